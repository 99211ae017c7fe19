/* Hides AVX-512 and AMX from a program, so that engines without such an option can be measured as on a processor with AVX2:

     LD_PRELOAD=liblimit_isa.so python3 models.py ...

   CPUID is made to fault (arch_prctl ARCH_SET_CPUID, Linux on processors with cpuid_fault in /proc/cpuinfo), and a signal handler
   answers in its place, without these features. On other processors (AMD), trap_cpuid.py replaces CPUID by UD2 in the libraries.
   AVX2, FMA and F16C remain, without AVX-VNNI and AVX-IFMA, as on Haswell to Zen 3. Threads inherit the setting, and a program
   started by the limited one limits itself through the same variable. */

#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { kSetCpuid = 0x1012 }; /* ARCH_SET_CPUID of asm/prctl.h */

static struct sigaction previous;
static int faults; /* whether the CPUID instruction faults */

static void answer(uint32_t leaf, uint32_t subleaf, uint32_t* eax, uint32_t* ebx, uint32_t* ecx,
                   uint32_t* edx) {
  __cpuid_count(leaf, subleaf, *eax, *ebx, *ecx, *edx);
  if (leaf == 7 && subleaf == 0) {
    /* AVX512 F, DQ, IFMA, PF, ER, CD, BW, VL; VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ; 4VNNIW, 4FMAPS, VP2INTERSECT, AMX, FP16. */
    *ebx &= ~(1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31);
    *ecx &= ~(1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14);
    *edx &= ~(1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25);
  } else if (leaf == 7 && subleaf == 1) {
    /* AVX-VNNI, AVX512-BF16, AMX-FP16, AVX-IFMA; AVX-VNNI-INT8, AVX-NE-CONVERT, AVX-VNNI-INT16, AVX10. */
    *eax &= ~(1u << 4 | 1u << 5 | 1u << 21 | 1u << 23);
    *edx &= ~(1u << 4 | 1u << 5 | 1u << 10 | 1u << 19);
  } else if (leaf == 0xd && subleaf == 0) {
    *eax &= 7u; /* saved state: x87, SSE, AVX */
  }
}

static void on_fault(int signal_number, siginfo_t* info, void* context) {
  greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  const uint8_t* code = (const uint8_t*)registers[REG_RIP];
  const int is_cpuid = faults ? info->si_code == SI_KERNEL && code[0] == 0x0f && code[1] == 0xa2
                              : info->si_code == ILL_ILLOPN && code[0] == 0x0f && code[1] == 0x0b;
  if (is_cpuid) {
    uint32_t eax, ebx, ecx, edx;
    if (faults) syscall(SYS_arch_prctl, kSetCpuid, 1);
    answer((uint32_t)registers[REG_RAX], (uint32_t)registers[REG_RCX], &eax, &ebx, &ecx, &edx);
    if (faults) syscall(SYS_arch_prctl, kSetCpuid, 0);
    registers[REG_RAX] = eax;
    registers[REG_RBX] = ebx;
    registers[REG_RCX] = ecx;
    registers[REG_RDX] = edx;
    registers[REG_RIP] += 2;
  } else {
    sigaction(signal_number, &previous, NULL); /* the instruction faults again, under the previous handler */
  }
}

__attribute__((constructor)) static void limit(void) {
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
  faults = 1; /* before the first fault */
  if (sigaction(SIGSEGV, &action, &previous) == 0 && syscall(SYS_arch_prctl, kSetCpuid, 0) == 0) return;
  faults = 0;
  if (sigaction(SIGSEGV, &previous, NULL) != 0 || sigaction(SIGILL, &action, &previous) != 0) {
    fputs("error: limit_isa: no handler can be set\n", stderr);
    _exit(1);
  }
}
