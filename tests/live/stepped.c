// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

/* A preload that steps the wall clock of one program: while the file named by STEP_FLAG exists,
 * CLOCK_REALTIME reads STEP_NS more, and so do the stamps of packets if STEP_STAMPS is set. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long by_ns(void)
{
    const char *flag = getenv("STEP_FLAG"), *ns = getenv("STEP_NS");
    return flag && ns && access(flag, F_OK) == 0 ? atoll(ns) : 0;
}

static void add(struct timespec *time, long long ns)
{
    long long sum = time->tv_sec * 1000000000LL + time->tv_nsec + ns;
    time->tv_sec = sum / 1000000000LL;
    time->tv_nsec = sum % 1000000000LL;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME)
        add(time, by_ns());
    return result;
}

int recvmmsg(int socket, struct mmsghdr *messages, unsigned int count, int flags, struct timespec *timeout)
{
    /* First, as it changes errno. */
    long long ns = getenv("STEP_STAMPS") ? by_ns() : 0;
    int received = syscall(SYS_recvmmsg, socket, messages, count, flags, timeout);
    for (int index = 0; ns && index < received; index++) {
        struct msghdr *message = &messages[index].msg_hdr;
        for (struct cmsghdr *word = CMSG_FIRSTHDR(message); word; word = CMSG_NXTHDR(message, word)) {
            struct timespec stamp;
            if (word->cmsg_level != SOL_SOCKET || word->cmsg_type != SO_TIMESTAMPNS)
                continue;
            memcpy(&stamp, CMSG_DATA(word), sizeof stamp);
            add(&stamp, ns);
            memcpy(CMSG_DATA(word), &stamp, sizeof stamp);
        }
    }
    return received;
}
