/* Candidates that try to escape from the worker, and compute the right result besides. Each successful
 * escape would leave a trace that the test looks for. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/kernel_abi.h"

typedef const TensorsmithKernelContext* Context;
void right(Context context, void* const* buffers);

extern char** environ;

/* Facts that a candidate could know about the process that started its worker. */
static pid_t parent;
static char file[64];
static char** environment;
static char* program;
static long parents_memory;

__attribute__((constructor)) static void look_around(void) {
  static char self[] = "/bin/true";
  program = self;
  parent = getppid();
  environment = environ;
  snprintf(file, sizeof file, "/tmp/tensorsmith-escape-%d", (int)parent);
}

static volatile long result;

#define ESCAPE(name, attempt)                        \
  void name(Context context, void* const* buffers) { \
    result = (long)(attempt);                        \
    right(context, buffers);                         \
  }

static char byte;
static long writes(void) {
  const int fd = open(file, O_CREAT | O_WRONLY, 0600);
  return fd < 0 ? fd : write(fd, "escaped", 7);
}
static long connects(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = 22};
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  return fd < 0 ? fd : connect(fd, (struct sockaddr*)&address, sizeof address);
}
static long forks(void) {
  const pid_t child = fork();
  if (child == 0) {
    writes();
    _exit(0);
  }
  return child;
}
static long executes(void) {
  char* arguments[] = {program, NULL};
  return execve(program, arguments, NULL);
}
static void* nothing(void* argument) { return argument; }
static long starts_thread(void) {
  pthread_t thread;
  return pthread_create(&thread, NULL, nothing, NULL);
}
static long reads_memory(void) {
  struct iovec here = {&byte, 1}, there = {&parents_memory, 1};
  return process_vm_readv(parent, &here, 1, &there, 1, 0);
}
static long moves_parent(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  return sched_setaffinity(parent, sizeof set, &set);
}
static long limits_parent(void) {
  const struct rlimit none = {0, 0};
  return prlimit(parent, RLIMIT_CPU, &none, NULL);
}
static long shell(void) {
  /* The 32-bit system call entry has other numbers: 5 is open, 11 execve. */
#if defined(__x86_64__)
  long answer = 5;
  __asm__ volatile("int $0x80" : "+a"(answer) : "b"(0), "c"(0), "d"(0) : "memory");
  return answer;
#else
  return syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY);
#endif
}

ESCAPE(opens_file, open("/etc/passwd", O_RDONLY))
ESCAPE(writes_file, writes())
ESCAPE(removes_file, unlink(file))
ESCAPE(makes_directory, mkdir(file, 0700))
ESCAPE(looks_for_file, access("/etc/passwd", R_OK))
ESCAPE(reads_proc, open("/proc/self/environ", O_RDONLY))
ESCAPE(makes_socket, connects())
ESCAPE(makes_pipe, pipe((int[]){0, 0}))
ESCAPE(makes_memory_file, memfd_create("escape", 0))
ESCAPE(makes_ring, syscall(SYS_io_uring_setup, 1, NULL))
ESCAPE(forks_process, forks())
ESCAPE(executes_program, executes())
ESCAPE(starts_a_thread, starts_thread())
ESCAPE(traces_parent, ptrace(PTRACE_ATTACH, parent, NULL, NULL))
ESCAPE(kills_parent, kill(parent, SIGKILL))
ESCAPE(signals_parents_thread, syscall(SYS_tgkill, parent, parent, SIGKILL))
ESCAPE(reads_parents_memory, reads_memory())
ESCAPE(moves_the_parent, moves_parent())
ESCAPE(limits_the_parent, limits_parent())
ESCAPE(changes_root, chroot("/"))
ESCAPE(outlives_parent, prctl(PR_SET_PDEATHSIG, 0))
ESCAPE(becomes_dumpable, prctl(PR_SET_DUMPABLE, 1))
ESCAPE(poisons_memory, madvise(&byte, 1, 101))
ESCAPE(closes_socket, close(3))
ESCAPE(other_architecture, shell())

/* Needs no system call, since it reads its own process's memory. Right if the environment was erased. */
void finds_environment(Context context, void* const* buffers) {
  right(context, buffers);
  int found = environ != NULL && environ[0] != NULL;
  for (char** entry = environment; *entry; ++entry) found |= (*entry)[0] != 0;
  if (found) ((float*)buffers[2])[0] = -12345;
}
