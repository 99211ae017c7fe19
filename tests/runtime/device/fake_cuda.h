// A driver that computes on the host, notes what it is asked and fails where told. Its functions have the signatures of
// NVIDIA's documentation; what follows is for tests, which load it as a library.
#pragma once

extern "C" {
// The calls since the last time, one a line: "cuLaunchKernel add grid 1 2 3 block 4 5 6 shared 7".
const char* fake_cuda_take_log();
// The next call of that name (without the version's suffix) gives this code; nullptr forgets it.
void fake_cuda_fail(const char* call, int code);
// Objects and memory that were made and not destroyed.
int fake_cuda_alive();
// Of the memory that is allocated.
unsigned long long fake_cuda_first_address();
}
