// Preloaded into a program: kills it, as kill -9 would, right before the n-th call that changes the disk,
// n = TENSORSMITH_KILL_AT.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;

static void count(void) {
  static _Atomic long limit = -1;
  if (limit < 0) {
    const char* text = getenv("TENSORSMITH_KILL_AT");
    limit = text != NULL ? atol(text) : 0;
  }
  if (atomic_fetch_add(&calls, 1) + 1 == limit) kill(getpid(), SIGKILL);
}

#define FORWARD(result, name, parameters, arguments)                                        \
  result name parameters {                                                                  \
    static result(*next) parameters;                                                        \
    if (next == NULL) next = (__extension__(result(*) parameters) dlsym(RTLD_NEXT, #name)); \
    count();                                                                                \
    return next arguments;                                                                  \
  }

FORWARD(int, fsync, (int fd), (fd))
FORWARD(int, fdatasync, (int fd), (fd))
FORWARD(int, ftruncate, (int fd, off_t size), (fd, size))
FORWARD(int, rename, (const char* from, const char* to), (from, to))
FORWARD(int, renameat2, (int a, const char* from, int b, const char* to, unsigned flags),
        (a, from, b, to, flags))
FORWARD(int, unlink, (const char* path), (path))
FORWARD(int, rmdir, (const char* path), (path))
FORWARD(int, mkdir, (const char* path, mode_t mode), (path, mode))
