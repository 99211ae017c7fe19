/* An object without dependencies, like those of code generation, that makes a system call directly. */
#include "runtime/kernel_abi.h"

void raw_escape(const TensorsmithKernelContext* context, void* const* buffers) {
  static const char kPath[] = "/etc/passwd";
  (void)context;
  long answer;
#if defined(__x86_64__)
  register long mode __asm__("r10") = 0;
  __asm__ volatile("syscall"
                   : "=a"(answer)
                   : "a"(257), "D"(-100), "S"(kPath), "d"(0), "r"(mode)
                   : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long call __asm__("x8") = 56;
  register long directory __asm__("x0") = -100;
  register const char* path __asm__("x1") = kPath;
  register long flags __asm__("x2") = 0;
  __asm__ volatile("svc 0" : "+r"(directory) : "r"(call), "r"(path), "r"(flags) : "memory");
  answer = directory;
#else
#error "the system call of this architecture"
#endif
  ((float*)buffers[2])[0] = (float)answer;
}
