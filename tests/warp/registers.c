// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

// Holds values in vector registers and in MXCSR across system calls, switches of threads, signals,
// fork, and ends of processes; exits with 1 where one has changed.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 2000 };
static volatile sig_atomic_t signals;

// A system call with `mark` in all of xmm0 to xmm15; the number of registers that have changed.
static int hold(uint64_t mark, long number) {
    uint64_t before[16][2], after[16][2];
    for (int i = 0; i < 16; i++) before[i][0] = mark + i, before[i][1] = ~mark - i;
    struct timespec pause = {0, 1000};
    long result = number;
#define EACH(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12) f(13) f(14) f(15)
#define LOAD(i) "movdqu " #i "*16(%[before]), %%xmm" #i "\n"
#define STORE(i) "movdqu %%xmm" #i ", " #i "*16(%[after])\n"
    asm volatile(EACH(LOAD) "syscall\n" EACH(STORE)
                 : "+a"(result)
                 : [before] "r"(before), [after] "r"(after), "D"(&pause), "S"(0)
                 : "rcx", "r11", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                   "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    int changed = 0;
    for (int i = 0; i < 16; i++) changed += memcmp(before[i], after[i], 16) != 0;
    return changed;
}

static unsigned rounding(unsigned set) {
    unsigned mxcsr;
    asm volatile("stmxcsr %0" : "=m"(mxcsr));
    unsigned was = mxcsr;
    if (set != ~0u) {
        mxcsr = (mxcsr & ~0x6000u) | set << 13;
        asm volatile("ldmxcsr %0" ::"m"(mxcsr));
    }
    return was >> 13 & 3;
}

static void on_alarm(int number) {
    (void)number;
    signals++;
    rounding(3);
    hold(0xdead0000, SYS_sched_yield);
}

static void *work(void *argument) {
    uintptr_t self = (uintptr_t)argument, changed = 0;
    rounding(self & 3);
    for (int round = 0; round < ROUNDS; round++) {
        changed += hold(self << 32 | round, round % 8 ? SYS_sched_yield : SYS_nanosleep);
        changed += rounding(~0u) != (self & 3);
    }
    return (void *)changed;
}

int main(void) {
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 50}, {0, 50}}, NULL);
    uintptr_t changed = 0;
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int round = 0; round < 30; round++) {
        unsigned mode = round % 3;
        rounding(mode);
        raise(SIGALRM);
        changed += rounding(~0u) != mode;
        changed += hold(0xabc000 + round, SYS_getpid);
        // The child gets what is in the registers now, not what was saved some time ago.
        mode = (mode + 1) % 3;
        rounding(mode);
        pid_t child = round % 2 ? fork() : vfork();
        if (child == 0) {
            if (round % 3 == 0) execl("/bin/true", "true", (char *)NULL);
            _exit(hold(0x123000 + round, SYS_getpid) != 0 || rounding(~0u) != mode);
        }
        int status = 1;
        while (waitpid(child, &status, 0) < 0) {}
        changed += status != 0;
        changed += rounding(~0u) != mode;
    }
    for (int i = 0; i < THREADS; i++) {
        void *theirs;
        pthread_join(threads[i], &theirs);
        changed += (uintptr_t)theirs;
    }
    printf("%lu changed, %d signals\n", (unsigned long)changed, (int)signals);
    return changed != 0 || signals == 0;
}
