//go:build mpi && linux

// What a good MPI programmer writes for ranks of one host: no messages, but one shared window and flags. A rank's
// packet and result lie in the window, or they are private and go through it by segments. Each rank codes a slice of
// all results, or its own result.
#define _GNU_SOURCE
#include "window.h"

#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned char byte;

enum {
	LINE = 64,
	PAGE = 4096,
	SEGMENT = 512 << 10, // of a packet that is copied: two of each rank stay in the caches
	CACHED = 24 << 10,   // of all packets, where they are read more than once
	STREAM = 16 << 20,   // what all ranks read and write is not in the caches any more from here on
	SPIN = 50000,        // nanoseconds
};

// A coefficient in the forms that kernels take.
typedef struct {
	uint64_t affine;
	byte nibbles[32], table[256];
} coefficient;

struct window {
	MPI_Comm host;
	MPI_Win win;
	int rank, k, kernel;
	bool crowded; // ranks share cores
	bool stream;  // results pass by the caches
	size_t bytes, slot;
	uint64_t epoch; // of meetings so far
	// Of copied segments so far, of all runs: a slot is written again after a meeting to which its readers came when they
	// had read it.
	uint64_t turn;
	byte **base, **in, **out;   // of each rank: flag, packet, result
	byte **segment, **piece;    // where copies of packets and results go
	const byte **x;
	byte **y;
	coefficient *a;
};

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

static long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

// Kernels: rows results of k packets, of n bytes each. Coefficients of a row lie one after the other. With stream,
// results pass by the caches where they are aligned.

static void tables(const coefficient *a, int k, int rows, const byte **x, byte **y, size_t from, size_t to) {
	for (int r = 0; r < rows; r++, a += k)
		for (size_t b = from; b < to; b++) {
			byte sum = 0;
			for (int i = 0; i < k; i++) sum ^= a[i].table[x[i][b]];
			y[r][b] = sum;
		}
}

#ifdef __x86_64__
#include <immintrin.h>

#define UNROLL _Pragma("GCC unroll 4") // so that sums lie in registers
#define INLINE static inline __attribute__((always_inline))
#define AVX2 __attribute__((target("avx2")))
#define GFNI __attribute__((target("avx512f,avx512bw,gfni")))

INLINE AVX2 void rows_avx2(const coefficient *a, int k, int rows, const byte **x, byte **y, size_t n, bool stream) {
	const __m256i low = _mm256_set1_epi8(15);
	for (size_t b = 0; b + 32 <= n; b += 32) {
		__m256i sum[4];
		UNROLL for (int r = 0; r < rows; r++) sum[r] = _mm256_setzero_si256();
		UNROLL for (int i = 0; i < k; i++) {
			__m256i v = _mm256_loadu_si256((const void *)(x[i] + b));
			__m256i l = _mm256_and_si256(v, low), h = _mm256_and_si256(_mm256_srli_epi16(v, 4), low);
			UNROLL for (int r = 0; r < rows; r++) {
				const __m128i *t = (const void *)a[r * k + i].nibbles;
				__m256i tl = _mm256_broadcastsi128_si256(_mm_loadu_si128(t));
				__m256i th = _mm256_broadcastsi128_si256(_mm_loadu_si128(t + 1));
				sum[r] = _mm256_xor_si256(sum[r], _mm256_xor_si256(_mm256_shuffle_epi8(tl, l), _mm256_shuffle_epi8(th, h)));
			}
		}
		UNROLL for (int r = 0; r < rows; r++) {
			if (stream) _mm256_stream_si256((void *)(y[r] + b), sum[r]);
			else _mm256_storeu_si256((void *)(y[r] + b), sum[r]);
		}
	}
}

INLINE GFNI void rows_gfni(const coefficient *a, int k, int rows, const byte **x, byte **y, size_t n, bool stream) {
	size_t b = 0;
	for (; b + 128 <= n; b += 128) { // two vectors for each coefficient that is loaded
		__m512i sum[4][2];
		UNROLL for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm512_setzero_si512();
		UNROLL for (int i = 0; i < k; i++) {
			__m512i v = _mm512_loadu_si512(x[i] + b), w = _mm512_loadu_si512(x[i] + b + 64);
			UNROLL for (int r = 0; r < rows; r++) {
				__m512i m = _mm512_set1_epi64(a[r * k + i].affine);
				sum[r][0] = _mm512_xor_si512(sum[r][0], _mm512_gf2p8affine_epi64_epi8(v, m, 0));
				sum[r][1] = _mm512_xor_si512(sum[r][1], _mm512_gf2p8affine_epi64_epi8(w, m, 0));
			}
		}
		UNROLL for (int r = 0; r < rows; r++)
			UNROLL for (int h = 0; h < 2; h++) {
				if (stream) _mm512_stream_si512((void *)(y[r] + b + 64 * h), sum[r][h]);
				else _mm512_storeu_si512(y[r] + b + 64 * h, sum[r][h]);
			}
	}
	while (b < n) {
		size_t m = least(64, n - b);
		__mmask64 mask = ~(__mmask64)0 >> (64 - m);
		UNROLL for (int r = 0; r < rows; r++) {
			__m512i sum = _mm512_setzero_si512();
			UNROLL for (int i = 0; i < k; i++)
				sum = _mm512_xor_si512(sum, _mm512_gf2p8affine_epi64_epi8(_mm512_maskz_loadu_epi8(mask, x[i] + b),
					_mm512_set1_epi64(a[r * k + i].affine), 0));
			_mm512_mask_storeu_epi8(y[r] + b, mask, sum);
		}
		b += m;
	}
}

// The compiler makes a loop for each number of rows, and keeps the coefficients of few packets in registers.
#define CHOOSE(rows_of, stream) \
	switch (8 * rows + (k < 5 ? k : 0)) { \
	case 8 * 1 + 2: rows_of(a, 2, 1, x, y, n, stream); break; \
	case 8 * 1 + 3: rows_of(a, 3, 1, x, y, n, stream); break; \
	case 8 * 1 + 4: rows_of(a, 4, 1, x, y, n, stream); break; \
	case 8 * 2 + 2: rows_of(a, 2, 2, x, y, n, stream); break; \
	case 8 * 3 + 3: rows_of(a, 3, 3, x, y, n, stream); break; \
	case 8 * 4 + 4: rows_of(a, 4, 4, x, y, n, stream); break; \
	default: \
		switch (rows) { \
		case 1: rows_of(a, k, 1, x, y, n, stream); break; \
		case 2: rows_of(a, k, 2, x, y, n, stream); break; \
		case 3: rows_of(a, k, 3, x, y, n, stream); break; \
		case 4: rows_of(a, k, 4, x, y, n, stream); break; \
		} \
	}

static AVX2 void code_avx2(const coefficient *a, int k, int rows, const byte **x, byte **y, size_t n, bool stream) {
	if (stream) CHOOSE(rows_avx2, true) else CHOOSE(rows_avx2, false)
	tables(a, k, rows, x, y, n & ~(size_t)31, n);
}
static GFNI void code_gfni(const coefficient *a, int k, int rows, const byte **x, byte **y, size_t n, bool stream) {
	if (stream) CHOOSE(rows_gfni, true) else CHOOSE(rows_gfni, false)
}

static int best(void) {
	__builtin_cpu_init();
	if (__builtin_cpu_supports("gfni") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) return 2;
	return __builtin_cpu_supports("avx2") ? 1 : 0;
}

static AVX2 void copy(byte *to, const byte *from, size_t n, bool stream) {
	if (!stream || (uintptr_t)to % 32 != 0) {
		memcpy(to, from, n);
		return;
	}
	size_t b = 0;
	for (; b + 32 <= n; b += 32) _mm256_stream_si256((void *)(to + b), _mm256_loadu_si256((const void *)(from + b)));
	memcpy(to + b, from + b, n - b);
}
static void settle(void) { _mm_sfence(); } // what has passed by the caches comes before the next flag
static void relax(void) { _mm_pause(); }
#else
static int best(void) { return 0; }
static void copy(byte *to, const byte *from, size_t n, bool stream) { memcpy(to, from, n); }
static void settle(void) {}
static void relax(void) {}
#endif

static bool aligned(byte **y, int rows) {
	for (int r = 0; r < rows; r++)
		if ((uintptr_t)y[r] % LINE) return false;
	return true;
}

// code makes results row to row+rows of w->x, n bytes each, in w->y.
static void code(window *w, int row, int rows, size_t n, bool stream) {
	int k = w->k;
	stream = stream && w->kernel > 0 && aligned(w->y, rows);
	size_t block = rows > 4 ? up(CACHED / k, 128) : n;
	for (; n > 0; n -= block) {
		block = least(block, n);
		for (int r = 0; r < rows; r += 4) {
			const coefficient *a = w->a + (row + r) * k;
			int some = least(rows - r, 4);
			switch (w->kernel) {
#ifdef __x86_64__
			case 2: code_gfni(a, k, some, w->x, w->y + r, block, stream); break;
			case 1: code_avx2(a, k, some, w->x, w->y + r, block, stream); break;
#endif
			default: tables(a, k, some, w->x, w->y + r, 0, block);
			}
		}
		for (int i = 0; i < k; i++) w->x[i] += block;
		for (int r = 0; r < rows; r++) w->y[r] += block;
	}
	if (stream) settle();
}

static _Atomic uint64_t *flag(window *w, int rank) { return (_Atomic uint64_t *)w->base[rank]; }

// meet returns when all ranks have called it. What they wrote before can be read after.
static void meet(window *w) {
	atomic_store_explicit(flag(w, w->rank), ++w->epoch, memory_order_release);
	long start = 0;
	for (int i = 1; i < w->k; i++) {
		_Atomic uint64_t *f = flag(w, (w->rank + i) % w->k);
		for (int n = 0; atomic_load_explicit(f, memory_order_acquire) < w->epoch; n++) {
			if (w->crowded || (start && now() - start > SPIN)) sched_yield();
			else if (!start) start = now();
			else relax();
		}
	}
}

// slice returns where slice j of n bytes begins. Ranks write no line together.
static size_t slice(const window *w, size_t n, int j) { return j == w->k ? n : n / LINE * j / w->k * LINE; }

void network_window_slice(window *w) {
	size_t from = slice(w, w->bytes, w->rank), to = slice(w, w->bytes, w->rank + 1);
	for (int i = 0; i < w->k; i++) w->x[i] = w->in[i] + from, w->y[i] = w->out[i] + from;
	meet(w);
	code(w, 0, w->k, to - from, w->stream);
	meet(w);
}

void network_window_own(window *w) {
	for (int i = 0; i < w->k; i++) w->x[i] = w->in[i];
	w->y[0] = w->out[w->rank];
	meet(w);
	code(w, w->rank, 1, w->bytes, w->stream);
	meet(w); // until then others read this rank's packet
}

// The own slice is not copied: its packet and its result are used where they are.

static void copy_in(window *w, size_t s, const byte *packet) {
	size_t at = s * SEGMENT, n = least(w->bytes - at, SEGMENT);
	size_t from = slice(w, n, w->rank), to = slice(w, n, w->rank + 1);
	byte *segment = w->segment[w->rank] + (w->turn + s) % 2 * w->slot;
	memcpy(segment, packet + at, from);
	memcpy(segment + to, packet + at + to, n - to);
}

static void copy_out(window *w, size_t s, byte *result) {
	size_t at = s * SEGMENT, n = least(w->bytes - at, SEGMENT);
	size_t from = slice(w, n, w->rank), to = slice(w, n, w->rank + 1);
	const byte *piece = w->piece[w->rank] + (w->turn + s) % 2 * w->slot;
	copy(result + at, piece, from, w->stream);
	copy(result + at + to, piece + to, n - to, w->stream);
}

static void code_slice(window *w, size_t s, const byte *packet, byte *result) {
	size_t at = s * SEGMENT, n = least(w->bytes - at, SEGMENT);
	size_t from = slice(w, n, w->rank), to = slice(w, n, w->rank + 1), slot = (w->turn + s) % 2 * w->slot;
	for (int i = 0; i < w->k; i++) w->x[i] = w->segment[i] + slot + from, w->y[i] = w->piece[i] + slot + from;
	w->x[w->rank] = packet + at + from, w->y[w->rank] = result + at + from;
	code(w, 0, w->k, to - from, false);
}

// One meeting for each segment: while it is coded, the next one goes in and the last one comes out.
void network_copies_slice(window *w, const byte *packet, byte *result) {
	size_t n = up(w->bytes, SEGMENT) / SEGMENT;
	copy_in(w, 0, packet);
	meet(w);
	for (size_t s = 0; s < n; s++) {
		if (s + 1 < n) copy_in(w, s + 1, packet);
		code_slice(w, s, packet, result);
		if (s) copy_out(w, s - 1, result);
		meet(w);
	}
	copy_out(w, n - 1, result);
	settle();
	w->turn += n;
}

// The last segment needs no meeting.
void network_copies_own(window *w, const byte *packet, byte *result) {
	for (size_t at = 0; at < w->bytes; at += SEGMENT, w->turn++) {
		size_t n = least(w->bytes - at, SEGMENT), slot = w->turn % 2 * w->slot;
		memcpy(w->segment[w->rank] + slot, packet + at, n);
		for (int i = 0; i < w->k; i++) w->x[i] = w->segment[i] + slot;
		w->x[w->rank] = packet + at, w->y[0] = result + at;
		meet(w);
		code(w, w->rank, 1, n, w->stream);
	}
}

// product multiplies by linearity.
static byte product(const byte *products, int symbol) {
	byte sum = 0;
	for (int b = 0; b < 8; b++)
		if (symbol >> b & 1) sum ^= products[b];
	return sum;
}

static void prepare(coefficient *c, const byte *products) {
	for (int s = 0; s < 256; s++) c->table[s] = product(products, s);
	for (int s = 0; s < 16; s++) c->nibbles[s] = c->table[s], c->nibbles[16 + s] = c->table[s << 4];
	c->affine = 0;
	for (int to = 0; to < 8; to++) // byte 7-to has the bits of a symbol that go into this bit of the product
		for (int from = 0; from < 8; from++)
			c->affine |= (uint64_t)(products[from] >> to & 1) << (8 * (7 - to) + from);
}

// crowded says whether ranks must share cores: they may run on fewer than they are.
static bool crowded(MPI_Comm host, int k) {
	cpu_set_t set;
	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof set, &set)) memset(&set, 0xff, sizeof set); // there are more cores than it has bits
	MPI_Allreduce(MPI_IN_PLACE, &set, sizeof set, MPI_BYTE, MPI_BOR, host);
	return CPU_COUNT(&set) < k;
}

window *network_window(const byte *products, size_t bytes, int kernel) {
	MPI_Comm host;
	int all, k;
	MPI_Comm_size(MPI_COMM_WORLD, &all);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
	MPI_Comm_size(host, &k);
	if (k < all) {
		MPI_Comm_free(&host);
		return NULL;
	}
	window *w = calloc(1, sizeof *w);
	w->host = host, w->k = k, w->bytes = bytes;
	MPI_Comm_rank(host, &w->rank);
	w->kernel = least(kernel, best());
	w->a = malloc(k * k * sizeof *w->a);
	for (int i = 0; i < k * k; i++) prepare(&w->a[i], products + 8 * i);
	w->crowded = crowded(host, k), w->stream = 2 * bytes * k >= STREAM;

	byte ***lists[] = {&w->base, &w->in, &w->out, &w->segment, &w->piece, &w->y};
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) *lists[i] = malloc(k * sizeof(byte *));
	w->x = malloc(k * sizeof *w->x);
	// Each rank has its own part, which lies in its memory as it touches it first. Nothing begins at the same place of a
	// page: the caches keep few such lines.
	w->slot = up(least(bytes, SEGMENT), LINE) + 5 * LINE;
	size_t room = up(bytes, LINE) + 7 * LINE, own = 2 * LINE + 2 * room + 4 * w->slot;
	MPI_Info info;
	MPI_Info_create(&info);
	MPI_Info_set(info, "alloc_shared_noncontig", "true");
	byte *mine;
	MPI_Win_allocate_shared(up(own + PAGE, PAGE), 1, info, host, &mine, &w->win);
	MPI_Info_free(&info);
	memset(mine, 0, up(own + PAGE, PAGE));
	for (int i = 0; i < k; i++) {
		MPI_Aint size;
		int unit;
		MPI_Win_shared_query(w->win, i, &size, &unit, &mine);
		w->base[i] = mine + (LINE - (uintptr_t)mine % LINE) % LINE;
		w->in[i] = w->base[i] + 2 * LINE;
		w->out[i] = w->in[i] + room;
		w->segment[i] = w->out[i] + room;
		w->piece[i] = w->segment[i] + 2 * w->slot;
	}
	MPI_Barrier(host);
	return w;
}

int network_window_kernel(const window *w) { return w->kernel; }
byte *network_window_packet(window *w) { return w->in[w->rank]; }
byte *network_window_result(window *w) { return w->out[w->rank]; }

void network_window_free(window *w) {
	MPI_Win_free(&w->win);
	MPI_Comm_free(&w->host);
	byte **lists[] = {w->base, w->in, w->out, w->segment, w->piece, w->y};
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) free(lists[i]);
	free(w->x), free(w->a), free(w);
}
