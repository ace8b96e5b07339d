// Waiting for MPI without calling it all the time, see sleep.c.
#ifndef VOLLEY_SLEEP_H
#define VOLLEY_SLEEP_H

// volley_sleep sleeps for at most so many nanoseconds, until volley_wake is called or, if
// sockets is set, a socket of the process may be read or, having been full, written. It
// returns whether it was woken.
int volley_sleep(long ns, int sockets);

// volley_wake ends a sleep that is under way, or the next one.
void volley_wake(void);

// volley_find_sockets looks which TCP sockets the process has by now.
void volley_find_sockets(void);

long volley_now(void);  // in nanoseconds

#endif
