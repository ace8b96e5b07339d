// One shared window of all ranks of a host, in which they encode: see window.c.
#include <stddef.h>

typedef struct window window;

// network_window returns a window for packets of so many bytes; NULL at all ranks if they are not all on one host.
// products has for each coefficient, that of packet i in result j at [j*K+i], its products with the symbols 1, 2, 4 to
// 128. kernel is the best one that may be used: 0 tables, 1 AVX2, 2 GFNI. All ranks call it.
window *network_window(const unsigned char *products, size_t bytes, int kernel);
int network_window_kernel(const window *w); // that codes

// The rank's packet and its result in the window.
unsigned char *network_window_packet(window *w);
unsigned char *network_window_result(window *w);

// The ways to encode. With copies, packet and result are the caller's.
void network_window_slice(window *w);
void network_window_own(window *w);
void network_copies_slice(window *w, const unsigned char *packet, unsigned char *result);
void network_copies_own(window *w, const unsigned char *packet, unsigned char *result);

void network_window_free(window *w); // all ranks call it
