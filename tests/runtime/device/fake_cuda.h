// A driver that computes on the host, logs its calls and fails on request. Its functions have the
// signatures of NVIDIA's documentation; the functions declared here are for tests, which load it as
// a library.
#pragma once

extern "C" {
// Returns the calls since the last call of this function, one per line: "cuLaunchKernel add grid 1
// 2 3 block 4 5 6 shared 7".
const char* fake_cuda_take_log();
// Makes the next call of that name (without the version's suffix) return this code; nullptr cancels
// it.
void fake_cuda_fail(const char* call, int code);
// Returns the number of objects and allocations that were made and not destroyed.
int fake_cuda_alive();
// Returns the lowest address of the allocated memory.
unsigned long long fake_cuda_first_address();
}
