// The sanitizers that a test is built with: some change the tested behaviour, such as memory limits
// or operator new.
#pragma once

#if defined(__has_feature)
#define TENSORSMITH_HAS_FEATURE(x) __has_feature(x)
#else
#define TENSORSMITH_HAS_FEATURE(x) 0
#endif

#if defined(__SANITIZE_THREAD__) || TENSORSMITH_HAS_FEATURE(thread_sanitizer)
#define TENSORSMITH_THREAD_SANITIZER 1
#else
#define TENSORSMITH_THREAD_SANITIZER 0
#endif
#if defined(__SANITIZE_ADDRESS__) || TENSORSMITH_HAS_FEATURE(address_sanitizer)
#define TENSORSMITH_ADDRESS_SANITIZER 1
#else
#define TENSORSMITH_ADDRESS_SANITIZER 0
#endif
