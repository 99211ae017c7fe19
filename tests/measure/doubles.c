/* Candidates for C[16, 16] = sum_k A[16, 16] * B[16, 16] in f32; buffers A, B, C. Some are right, the others
 * misbehave. They hide their intent from the compiler's optimizer (`always`). */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "runtime/kernel_abi.h"

typedef const TensorsmithKernelContext* Context;
enum { N = 16 };

static volatile int always = 1;

static void matmul_rows(void* closure, int64_t begin, int64_t end, int32_t thread) {
  void* const* buffers = (void* const*)closure;
  const float* a = (const float*)buffers[0];
  const float* b = (const float*)buffers[1];
  float* c = (float*)buffers[2];
  (void)thread;
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = 0; j < N; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < N; ++k) sum += a[i * N + k] * b[k * N + j];
      c[i * N + j] = sum;
    }
  }
}

void right(Context context, void* const* buffers) {
  context->parallel_for(context->pool, N, matmul_rows, (void*)buffers);
}

/* Right, and uses all of its workspaces: 4096 bytes shared, 256 bytes per thread. */
void right_with_workspace(Context context, void* const* buffers) {
  memset(context->shared_workspace, 1, 4096);
  for (int32_t t = 0; t < context->num_threads; ++t)
    memset((char*)context->thread_workspace + t * context->thread_workspace_stride, 2, 256);
  right(context, buffers);
}

/* Expects B transposed. */
void right_packed(Context context, void* const* buffers) {
  const float* a = (const float*)buffers[0];
  const float* b = (const float*)buffers[1];
  float* c = (float*)buffers[2];
  (void)context;
  for (int64_t i = 0; i < N; ++i) {
    for (int64_t j = 0; j < N; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < N; ++k) sum += a[i * N + k] * b[j * N + k];
      c[i * N + j] = sum;
    }
  }
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
static void wait_seconds(double seconds) {
  const double start = seconds_now();
  while (seconds_now() - start < seconds) {
  }
}

void slow(Context context, void* const* buffers) {
  wait_seconds(0.02);
  right(context, buffers);
}

/* The first run takes long enough to be disturbed from outside. */
void slow_at_first(Context context, void* const* buffers) {
  static int runs = 0;
  if (runs++ == 0) wait_seconds(0.8);
  right(context, buffers);
}

void wrong_element(Context context, void* const* buffers) {
  right(context, buffers);
  ((float*)buffers[2])[37] += 0.5f;
}

void unwritten(Context context, void* const* buffers) {
  const float last = ((float*)buffers[2])[N * N - 1];
  right(context, buffers);
  ((float*)buffers[2])[N * N - 1] = last;
}

/* Adds to the old output: right if that is zero. */
void accumulates(Context context, void* const* buffers) {
  float old[N * N];
  memcpy(old, buffers[2], sizeof old);
  right(context, buffers);
  for (int i = 0; i < N * N; ++i) ((float*)buffers[2])[i] += old[i];
}

void wrong_later(Context context, void* const* buffers) {
  static int runs = 0;
  right(context, buffers);
  if (++runs > 1) ((float*)buffers[2])[5] = 99;
}

void writes_before(Context context, void* const* buffers) {
  right(context, buffers);
  ((float*)buffers[2])[-always] = 1;
}

void writes_far_after(Context context, void* const* buffers) {
  right(context, buffers);
  ((float*)buffers[2])[N * N + 16 * always] = 1;
}

void writes_outside_workspace(Context context, void* const* buffers) {
  right(context, buffers);
  ((char*)context->shared_workspace)[-always] = 1;
}

void writes_input(Context context, void* const* buffers) {
  right(context, buffers);
  ((float*)buffers[0])[3] = 1;
}

void segfaults(Context context, void* const* buffers) {
  (void)context;
  (void)buffers;
  *(volatile int*)(intptr_t)(always - 1) = 1;
}

void aborts(Context context, void* const* buffers) {
  (void)context;
  (void)buffers;
  abort();
}

void executes_nonsense(Context context, void* const* buffers) {
  (void)context;
  (void)buffers;
  if (always) __builtin_trap();
}

static int recurse(int depth) {
  volatile char frame[4096];
  frame[depth % 4096] = (char)depth;
  return always ? recurse(depth + 1) + frame[1] : 0;
}
void overflows_stack(Context context, void* const* buffers) {
  (void)context;
  (void)buffers;
  always += recurse(0);
}

void loops(Context context, void* const* buffers) {
  (void)context;
  (void)buffers;
  while (always) {
  }
}

static void loops_in_thread(void* closure, int64_t begin, int64_t end, int32_t thread) {
  (void)closure;
  (void)begin;
  (void)end;
  while (always && thread >= 0) {
  }
}
void loops_everywhere(Context context, void* const* buffers) {
  (void)buffers;
  context->parallel_for(context->pool, 64, loops_in_thread, NULL);
}

/* Uses the result of malloc without a check. */
void eats_memory(Context context, void* const* buffers) {
  (void)context;
  (void)buffers;
  while (always) {
    char* piece = (char*)malloc(1 << 20);
    memset(piece, always, 1 << 20);
  }
}

/* Continues when memory runs out. */
void eats_memory_and_loops(Context context, void* const* buffers) {
  (void)context;
  (void)buffers;
  while (always) {
    volatile char* piece = (volatile char*)malloc(1 << 20);
    if (piece) piece[7] = 1;
  }
}

void exits(Context context, void* const* buffers) {
  (void)context;
  (void)buffers;
  _exit(0);
}

void closes_descriptors(Context context, void* const* buffers) {
  (void)context;
  (void)buffers;
  for (int fd = 0; fd < 100; ++fd) close(fd);
  while (always) {
  }
}

void sends_garbage(Context context, void* const* buffers) {
  static char garbage[64] = "garbage";
  struct iovec part = {garbage, sizeof garbage};
  struct msghdr message;
  memset(&message, 0, sizeof message);
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  right(context, buffers);
  if (sendmsg(3, &message, 0) < 0) abort();
}
