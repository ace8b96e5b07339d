// Two streams of SHA-256 by the processor's instructions. SHA256RNDS2 waits for the one before; that of the other
// stream runs meanwhile.

#include "textflag.h"

// bigEndian has PSHUFB turn the bytes of four words around.
DATA bigEndian<>+0(SB)/8, $0x0405060700010203
DATA bigEndian<>+8(SB)/8, $0x0c0d0e0f08090a0b
GLOBL bigEndian<>(SB), RODATA|NOPTR, $16

// ROUNDS does four rounds of a stream, with the message words cur.
#define ROUNDS(group, abef, cdgh, cur) \
	MOVOU group*16(CX), X0; \
	PADDD cur, X0; \
	SHA256RNDS2 X0, abef, cdgh; \
	PSHUFD $0x0e, X0, X0; \
	SHA256RNDS2 X0, cdgh, abef

// EXTEND completes the next message words.
#define EXTEND(prev, cur, next) \
	MOVO cur, X14; \
	PALIGNR $4, prev, X14; \
	PADDD X14, next; \
	SHA256MSG2 cur, next

#define LOAD(at, p, to) \
	MOVOU at(p), to; \
	PSHUFB X13, to

// Four rounds of both streams, by what the groups at the beginning and at the end leave out.
#define PLAIN(group, a, b) \
	ROUNDS(group, X1, X2, a); \
	ROUNDS(group, X7, X8, b)

#define BEGIN(group, aprev, a, bprev, b) \
	PLAIN(group, a, b); \
	SHA256MSG1 a, aprev; \
	SHA256MSG1 b, bprev

#define END(group, aprev, a, anext, bprev, b, bnext) \
	PLAIN(group, a, b); \
	EXTEND(aprev, a, anext); \
	EXTEND(bprev, b, bnext)

#define FULL(group, aprev, a, anext, bprev, b, bnext) \
	END(group, aprev, a, anext, bprev, b, bnext); \
	SHA256MSG1 a, aprev; \
	SHA256MSG1 b, bprev

// func blocks(states *[2][8]uint32, k *[64]uint32, p, q *byte, n int)
TEXT ·blocks(SB), NOSPLIT, $64-40
	MOVQ states+0(FP), DI
	MOVQ k+8(FP), CX
	MOVQ p+16(FP), SI
	MOVQ q+24(FP), DX
	MOVQ n+32(FP), BX
	MOVOU 0(DI), X1
	MOVOU 16(DI), X2
	MOVOU 32(DI), X7
	MOVOU 48(DI), X8
	MOVOU bigEndian<>(SB), X13

loop:
	MOVOU X1, 0(SP)
	MOVOU X2, 16(SP)
	MOVOU X7, 32(SP)
	MOVOU X8, 48(SP)
	LOAD(0, SI, X3)
	LOAD(0, DX, X9)
	LOAD(16, SI, X4)
	LOAD(16, DX, X10)
	LOAD(32, SI, X5)
	LOAD(32, DX, X11)
	LOAD(48, SI, X6)
	LOAD(48, DX, X12)
	PLAIN(0, X3, X9)
	BEGIN(1, X3, X4, X9, X10)
	BEGIN(2, X4, X5, X10, X11)
	FULL(3, X5, X6, X3, X11, X12, X9)
	FULL(4, X6, X3, X4, X12, X9, X10)
	FULL(5, X3, X4, X5, X9, X10, X11)
	FULL(6, X4, X5, X6, X10, X11, X12)
	FULL(7, X5, X6, X3, X11, X12, X9)
	FULL(8, X6, X3, X4, X12, X9, X10)
	FULL(9, X3, X4, X5, X9, X10, X11)
	FULL(10, X4, X5, X6, X10, X11, X12)
	FULL(11, X5, X6, X3, X11, X12, X9)
	FULL(12, X6, X3, X4, X12, X9, X10)
	END(13, X3, X4, X5, X9, X10, X11)
	END(14, X4, X5, X6, X10, X11, X12)
	PLAIN(15, X6, X12)
	MOVOU 0(SP), X0
	PADDD X0, X1
	MOVOU 16(SP), X0
	PADDD X0, X2
	MOVOU 32(SP), X0
	PADDD X0, X7
	MOVOU 48(SP), X0
	PADDD X0, X8
	ADDQ $64, SI
	ADDQ $64, DX
	DECQ BX
	JNE loop
	MOVOU X1, 0(DI)
	MOVOU X2, 16(DI)
	MOVOU X7, 32(DI)
	MOVOU X8, 48(DI)
	RET
