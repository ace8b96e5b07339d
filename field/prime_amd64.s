//go:build !purego

#include "textflag.h"

// The kernels of primeKernels: R outputs, of all inputs, symbol by symbol. Sums stay in
// registers until they are stored.
//
// Registers: DI out, SI in (both at slice headers of 24 bytes), DX coef, R8 inputs,
// R9 chunk, CX the symbol at hand, BX their number; R10, R11 the next input and its
// coefficients, R12 inputs left, R13 of them in the chunk; Z0 … Z3 sums, Z20 q,
// Z21 -1/q, Z22 q·R, and K1 the symbols there are.

#define ARGUMENTS \
	MOVQ out+0(FP), DI     \
	MOVQ in+8(FP), SI      \
	MOVQ coef+16(FP), DX   \
	MOVQ inputs+24(FP), R8 \
	MOVQ chunk+32(FP), R9  \
	MOVQ n+40(FP), BX      \
	XORQ CX, CX

// MASK(n) sets K1 to as many of n symbols as are left.
#define MASK(n) \
	MOVQ    BX, AX       \
	SUBQ    CX, AX       \
	MOVQ    $n, R10      \
	CMPQ    AX, R10      \
	CMOVQGT R10, AX      \
	MOVQ    $-1, R10     \
	SHLXQ   AX, R10, R10 \
	NOTQ    R10          \
	KMOVW   R10, K1

#define CHUNK \
	MOVQ    R9, R13  \
	CMPQ    R12, R13 \
	CMOVQLT R12, R13 \
	SUBQ    R13, R12

// Wide: lanes of 64 bits, R = 2^32.

#define WIDECONSTANTS \
	MOVQ         q+48(FP), AX   \
	VPBROADCASTQ AX, Z20        \
	MOVQ         neg+56(FP), AX \
	VPBROADCASTQ AX, Z21        \
	VPSLLQ       $32, Z20, Z22

#define WIDEBEGIN(SUM, r, EXTEND, size) \
	MOVQ     (24*r)(DI), AX               \
	EXTEND.Z (AX)(CX*size), K1, SUM       \
	VPSLLQ   $32, SUM, SUM

#define WIDEMUL(SUM, r) \
	VPMULUDQ.BCST (8*r)(R11), Z4, Z5 \
	VPADDQ        Z5, SUM, SUM

#define WIDEFOLD(SUM) \
	VPSUBQ  Z22, SUM, Z5 \
	VPMINUQ Z5, SUM, SUM

#define WIDEEND(SUM, r, NARROW, size) \
	VPMULUDQ SUM, Z21, Z5              \
	VPMULUDQ Z5, Z20, Z5               \
	VPADDQ   Z5, SUM, SUM              \
	VPSRLQ   $32, SUM, SUM             \
	VPSUBQ   Z20, SUM, Z5              \
	VPMINUQ  Z5, SUM, SUM              \
	MOVQ     (24*r)(DI), AX            \
	NARROW   SUM, K1, (AX)(CX*size)

#define WIDE(R, EXTEND, size, BEGIN, MUL, FOLD, END) \
	ARGUMENTS                         \
	WIDECONSTANTS                     \
	CMPQ     CX, BX                   \
	JGE      done                     \
block: \
	MASK(8)                           \
	VPXORQ   Z0, Z0, Z0               \
	VPXORQ   Z1, Z1, Z1               \
	VPXORQ   Z2, Z2, Z2               \
	VPXORQ   Z3, Z3, Z3               \
	CMPB     add+64(FP), $0           \
	JEQ      begun                    \
	BEGIN                             \
begun: \
	MOVQ     SI, R10                  \
	MOVQ     DX, R11                  \
	MOVQ     R8, R12                  \
chunks: \
	CHUNK                             \
inputs: \
	MOVQ     (R10), AX                \
	EXTEND.Z (AX)(CX*size), K1, Z4    \
	MUL                               \
	ADDQ     $24, R10                 \
	ADDQ     $(8*R), R11              \
	DECQ     R13                      \
	JNE      inputs                   \
	FOLD                              \
	TESTQ    R12, R12                 \
	JNE      chunks                   \
	END                               \
	ADDQ     $8, CX                   \
	CMPQ     CX, BX                   \
	JLT      block                    \
done: \
	VZEROUPPER                        \
	RET

#define WIDEBEGIN1(E, s) WIDEBEGIN(Z0, 0, E, s)
#define WIDEBEGIN2(E, s) WIDEBEGIN1(E, s); WIDEBEGIN(Z1, 1, E, s)
#define WIDEBEGIN4(E, s) WIDEBEGIN2(E, s); WIDEBEGIN(Z2, 2, E, s); WIDEBEGIN(Z3, 3, E, s)
#define WIDEMUL1 WIDEMUL(Z0, 0)
#define WIDEMUL2 WIDEMUL1; WIDEMUL(Z1, 1)
#define WIDEMUL4 WIDEMUL2; WIDEMUL(Z2, 2); WIDEMUL(Z3, 3)
#define WIDEFOLD1 WIDEFOLD(Z0)
#define WIDEFOLD2 WIDEFOLD1; WIDEFOLD(Z1)
#define WIDEFOLD4 WIDEFOLD2; WIDEFOLD(Z2); WIDEFOLD(Z3)
#define WIDEEND1(N, s) WIDEEND(Z0, 0, N, s)
#define WIDEEND2(N, s) WIDEEND1(N, s); WIDEEND(Z1, 1, N, s)
#define WIDEEND4(N, s) WIDEEND2(N, s); WIDEEND(Z2, 2, N, s); WIDEEND(Z3, 3, N, s)

// func primeWide2x1(out, in *[]byte, coef *uint32, inputs, chunk, n int, q, neg uint64, add bool)
TEXT ·primeWide2x1(SB), NOSPLIT, $0-65
	WIDE(1, VPMOVZXWQ, 2, WIDEBEGIN1(VPMOVZXWQ, 2), WIDEMUL1, WIDEFOLD1, WIDEEND1(VPMOVQW, 2))

// func primeWide2x2(out, in *[]byte, coef *uint32, inputs, chunk, n int, q, neg uint64, add bool)
TEXT ·primeWide2x2(SB), NOSPLIT, $0-65
	WIDE(2, VPMOVZXWQ, 2, WIDEBEGIN2(VPMOVZXWQ, 2), WIDEMUL2, WIDEFOLD2, WIDEEND2(VPMOVQW, 2))

// func primeWide2x4(out, in *[]byte, coef *uint32, inputs, chunk, n int, q, neg uint64, add bool)
TEXT ·primeWide2x4(SB), NOSPLIT, $0-65
	WIDE(4, VPMOVZXWQ, 2, WIDEBEGIN4(VPMOVZXWQ, 2), WIDEMUL4, WIDEFOLD4, WIDEEND4(VPMOVQW, 2))

// func primeWide4x1(out, in *[]byte, coef *uint32, inputs, chunk, n int, q, neg uint64, add bool)
TEXT ·primeWide4x1(SB), NOSPLIT, $0-65
	WIDE(1, VPMOVZXDQ, 4, WIDEBEGIN1(VPMOVZXDQ, 4), WIDEMUL1, WIDEFOLD1, WIDEEND1(VPMOVQD, 4))

// func primeWide4x2(out, in *[]byte, coef *uint32, inputs, chunk, n int, q, neg uint64, add bool)
TEXT ·primeWide4x2(SB), NOSPLIT, $0-65
	WIDE(2, VPMOVZXDQ, 4, WIDEBEGIN2(VPMOVZXDQ, 4), WIDEMUL2, WIDEFOLD2, WIDEEND2(VPMOVQD, 4))

// func primeWide4x4(out, in *[]byte, coef *uint32, inputs, chunk, n int, q, neg uint64, add bool)
TEXT ·primeWide4x4(SB), NOSPLIT, $0-65
	WIDE(4, VPMOVZXDQ, 4, WIDEBEGIN4(VPMOVZXDQ, 4), WIDEMUL4, WIDEFOLD4, WIDEEND4(VPMOVQD, 4))

// Narrow: lanes of 32 bits, R = 2^16. An instruction multiplies and adds two inputs,
// in the halves of a lane, with coefficients likewise; coef, inputs and chunk count
// such pairs, and the last input may be without a peer.

#define NARROWCONSTANTS \
	MOVQ         q+48(FP), AX   \
	VPBROADCASTD AX, Z20        \
	MOVQ         neg+56(FP), AX \
	VPBROADCASTD AX, Z21        \
	VPSLLD       $16, Z20, Z22

#define NARROWBEGIN(SUM, r, EXTEND, size) \
	MOVQ     (24*r)(DI), AX               \
	EXTEND.Z (AX)(CX*size), K1, SUM       \
	VPSLLD   $16, SUM, SUM

#define NARROWMUL(SUM, r) \
	VPBROADCASTD (4*r)(R11), Z5 \
	VPMADDWD     Z5, Z4, Z5     \
	VPADDD       Z5, SUM, SUM

#define NARROWFOLD(SUM) \
	VPSUBD  Z22, SUM, Z5 \
	VPMINUD Z5, SUM, SUM

#define NARROWEND(SUM, r, NARROW, size) \
	VPMULLW SUM, Z21, Z5              \
	VPMULLD Z5, Z20, Z5               \
	VPADDD  Z5, SUM, SUM              \
	VPSRLD  $16, SUM, SUM             \
	VPSUBD  Z20, SUM, Z5              \
	VPMINUD Z5, SUM, SUM              \
	MOVQ    (24*r)(DI), AX            \
	NARROW  SUM, K1, (AX)(CX*size)

#define NARROW(R, EXTEND, size, BEGIN, MUL, FOLD, END) \
	ARGUMENTS                         \
	NARROWCONSTANTS                   \
	CMPQ     CX, BX                   \
	JGE      done                     \
block: \
	MASK(16)                          \
	VPXORQ   Z0, Z0, Z0               \
	VPXORQ   Z1, Z1, Z1               \
	VPXORQ   Z2, Z2, Z2               \
	VPXORQ   Z3, Z3, Z3               \
	CMPB     add+64(FP), $0           \
	JEQ      begun                    \
	BEGIN                             \
begun: \
	MOVQ     SI, R10                  \
	MOVQ     DX, R11                  \
	MOVQ     R8, R12                  \
	SHRQ     $1, R12                  \
	JEQ      last                     \
chunks: \
	CHUNK                             \
inputs: \
	MOVQ     (R10), AX                \
	EXTEND.Z (AX)(CX*size), K1, Z4    \
	MOVQ     24(R10), AX              \
	EXTEND.Z (AX)(CX*size), K1, Z6    \
	VPSLLD   $16, Z6, Z6              \
	VPORD    Z6, Z4, Z4               \
	MUL                               \
	ADDQ     $48, R10                 \
	ADDQ     $(4*R), R11              \
	DECQ     R13                      \
	JNE      inputs                   \
	FOLD                              \
	TESTQ    R12, R12                 \
	JNE      chunks                   \
last: \
	TESTQ    $1, R8                   \
	JEQ      end                      \
	MOVQ     (R10), AX                \
	EXTEND.Z (AX)(CX*size), K1, Z4    \
	MUL                               \
	FOLD                              \
end: \
	END                               \
	ADDQ     $16, CX                  \
	CMPQ     CX, BX                   \
	JLT      block                    \
done: \
	VZEROUPPER                        \
	RET

#define NARROWBEGIN1(E, s) NARROWBEGIN(Z0, 0, E, s)
#define NARROWBEGIN2(E, s) NARROWBEGIN1(E, s); NARROWBEGIN(Z1, 1, E, s)
#define NARROWBEGIN4(E, s) NARROWBEGIN2(E, s); NARROWBEGIN(Z2, 2, E, s); NARROWBEGIN(Z3, 3, E, s)
#define NARROWMUL1 NARROWMUL(Z0, 0)
#define NARROWMUL2 NARROWMUL1; NARROWMUL(Z1, 1)
#define NARROWMUL4 NARROWMUL2; NARROWMUL(Z2, 2); NARROWMUL(Z3, 3)
#define NARROWFOLD1 NARROWFOLD(Z0)
#define NARROWFOLD2 NARROWFOLD1; NARROWFOLD(Z1)
#define NARROWFOLD4 NARROWFOLD2; NARROWFOLD(Z2); NARROWFOLD(Z3)
#define NARROWEND1(N, s) NARROWEND(Z0, 0, N, s)
#define NARROWEND2(N, s) NARROWEND1(N, s); NARROWEND(Z1, 1, N, s)
#define NARROWEND4(N, s) NARROWEND2(N, s); NARROWEND(Z2, 2, N, s); NARROWEND(Z3, 3, N, s)

// func primeNarrow1x1(out, in *[]byte, coef *uint32, inputs, chunk, n int, q, neg uint64, add bool)
TEXT ·primeNarrow1x1(SB), NOSPLIT, $0-65
	NARROW(1, VPMOVZXBD, 1, NARROWBEGIN1(VPMOVZXBD, 1), NARROWMUL1, NARROWFOLD1, NARROWEND1(VPMOVDB, 1))

// func primeNarrow1x2(out, in *[]byte, coef *uint32, inputs, chunk, n int, q, neg uint64, add bool)
TEXT ·primeNarrow1x2(SB), NOSPLIT, $0-65
	NARROW(2, VPMOVZXBD, 1, NARROWBEGIN2(VPMOVZXBD, 1), NARROWMUL2, NARROWFOLD2, NARROWEND2(VPMOVDB, 1))

// func primeNarrow1x4(out, in *[]byte, coef *uint32, inputs, chunk, n int, q, neg uint64, add bool)
TEXT ·primeNarrow1x4(SB), NOSPLIT, $0-65
	NARROW(4, VPMOVZXBD, 1, NARROWBEGIN4(VPMOVZXBD, 1), NARROWMUL4, NARROWFOLD4, NARROWEND4(VPMOVDB, 1))

// func primeNarrow2x1(out, in *[]byte, coef *uint32, inputs, chunk, n int, q, neg uint64, add bool)
TEXT ·primeNarrow2x1(SB), NOSPLIT, $0-65
	NARROW(1, VPMOVZXWD, 2, NARROWBEGIN1(VPMOVZXWD, 2), NARROWMUL1, NARROWFOLD1, NARROWEND1(VPMOVDW, 2))

// func primeNarrow2x2(out, in *[]byte, coef *uint32, inputs, chunk, n int, q, neg uint64, add bool)
TEXT ·primeNarrow2x2(SB), NOSPLIT, $0-65
	NARROW(2, VPMOVZXWD, 2, NARROWBEGIN2(VPMOVZXWD, 2), NARROWMUL2, NARROWFOLD2, NARROWEND2(VPMOVDW, 2))

// func primeNarrow2x4(out, in *[]byte, coef *uint32, inputs, chunk, n int, q, neg uint64, add bool)
TEXT ·primeNarrow2x4(SB), NOSPLIT, $0-65
	NARROW(4, VPMOVZXWD, 2, NARROWBEGIN4(VPMOVZXWD, 2), NARROWMUL4, NARROWFOLD4, NARROWEND4(VPMOVDW, 2))
