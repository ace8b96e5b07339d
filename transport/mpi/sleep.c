//go:build mpi

// MPI has no call that waits for one of several requests, or a while, without using up a
// core. Where its messages come over TCP, the sockets it reads are the process's, and
// the kernel tells when they have something. They are only watched here.
#define _GNU_SOURCE
#include "sleep.h"
#include <time.h>

long volley_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

#ifdef __linux__
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int readable = -1;  // epoll: what may be read, and the two below
static int writable = -1;  // epoll: what may be written again
static int bell = -1;      // eventfd: volley_wake

static void set_up(void) {
	struct epoll_event in = {.events = EPOLLIN};
	readable = epoll_create1(EPOLL_CLOEXEC);
	writable = epoll_create1(EPOLL_CLOEXEC);
	bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	epoll_ctl(readable, EPOLL_CTL_ADD, bell, &in);
	epoll_ctl(readable, EPOLL_CTL_ADD, writable, &in);
}

int volley_sleep(long ns, int sockets) {
	static __thread int exact;
	// Else the kernel adds 50 µs.
	if (!exact) exact = prctl(PR_SET_TIMERSLACK, 1000) == 0;
	pthread_once(&once, set_up);
	struct pollfd p = {sockets ? readable : bell, POLLIN, 0};
	struct timespec t = {ns / 1000000000, ns % 1000000000};
	if (ppoll(&p, 1, &t, NULL) <= 0) return 0;
	struct epoll_event events[16];
	uint64_t rung;
	if (read(bell, &rung, sizeof rung) < 0) epoll_wait(writable, events, 16, 0);
	return 1;
}

void volley_wake(void) {
	uint64_t one = 1;
	if (write(bell, &one, sizeof one) < 0) return;  // it rings already
}

void volley_find_sockets(void) {
	pthread_once(&once, set_up);
	DIR *d = opendir("/proc/self/fd");
	if (!d) return;
	for (struct dirent *e; (e = readdir(d));) {
		struct sockaddr_storage address;
		socklen_t size = sizeof address;
		int fd = atoi(e->d_name);
		if (e->d_name[0] == '.' || getsockname(fd, (struct sockaddr *)&address, &size) != 0) continue;
		if (address.ss_family != AF_INET && address.ss_family != AF_INET6) continue;
		// One that is there already stays; one that is closed leaves by itself.
		struct epoll_event in = {.events = EPOLLIN}, out = {.events = EPOLLOUT | EPOLLET};
		epoll_ctl(readable, EPOLL_CTL_ADD, fd, &in);
		epoll_ctl(writable, EPOLL_CTL_ADD, fd, &out);
	}
	closedir(d);
}
#else
int volley_sleep(long ns, int sockets) {
	struct timespec t = {ns / 1000000000, ns % 1000000000};
	nanosleep(&t, NULL);
	return 0;
}
void volley_wake(void) {}
void volley_find_sockets(void) {}
#endif
