//go:build !purego

#include "textflag.h"

// The kernels of goldilocks: R outputs of all inputs, eight symbols at a time, as
// sums of three words of 52 bits and more.
//
// Registers: DI out, SI in (both at slice headers of 24 bytes), DX coef, R8 inputs,
// CX the symbol at hand, BX their number; R10, R11 the next input and its
// coefficients, R12 inputs left; Z0 … Z11 sums, Z12 an input, Z13 its upper 12 bits,
// Z20 2^52-1, Z21 2^32-1, Z22 q, and K1 the symbols there are.

#define BEGIN(LO, MID, HI, r) \
	MOVQ        (24*r)(DI), AX           \
	VMOVDQU64.Z (AX)(CX*8), K1, LO       \
	VPSRLQ      $52, LO, MID             \
	VPANDQ      Z20, LO, LO

// The instructions take the lower 52 bits of each factor.
#define MUL(LO, MID, HI, r) \
	VPMADD52LUQ.BCST (16*r)(R11), Z12, LO    \
	VPMADD52HUQ.BCST (16*r)(R11), Z12, MID   \
	VPMADD52HUQ.BCST (16*r)(R11), Z13, HI    \
	VPMADD52LUQ.BCST (16*r)(R11), Z13, MID   \
	VPMADD52HUQ.BCST (16*r+8)(R11), Z12, HI  \
	VPMADD52LUQ.BCST (16*r+8)(R11), Z12, MID \
	VPMADD52LUQ.BCST (16*r+8)(R11), Z13, HI

// END makes three words of 64 bits, and a code as wideSum.mod does.
#define END(LO, MID, HI, r) \
	VPSRLQ    $52, LO, Z14          \
	VPADDQ    Z14, MID, MID         \
	VPANDQ    Z20, LO, LO           \
	VPSRLQ    $52, MID, Z14         \
	VPADDQ    Z14, HI, HI           \
	VPANDQ    Z20, MID, MID         \
	VPSLLQ    $52, MID, Z14         \
	VPORQ     Z14, LO, LO           \
	VPSRLQ    $12, MID, MID         \
	VPSLLQ    $40, HI, Z14          \
	VPORQ     Z14, MID, MID         \
	VPSRLQ    $24, HI, HI           \
	VPSRLQ    $32, MID, Z14         \
	VPCMPUQ   $1, Z14, LO, K2       \
	VPSUBQ    Z14, LO, LO           \
	VPSUBQ    Z21, LO, K2, LO       \
	VPANDQ    Z21, MID, MID         \
	VPSLLQ    $32, MID, Z14         \
	VPSUBQ    MID, Z14, Z14         \
	VPADDQ    Z14, LO, LO           \
	VPCMPUQ   $1, Z14, LO, K2       \
	VPADDQ    Z21, LO, K2, LO       \
	VPSLLQ    $32, HI, HI           \
	VPCMPUQ   $1, HI, LO, K2        \
	VPSUBQ    HI, LO, LO            \
	VPSUBQ    Z21, LO, K2, LO       \
	VPSUBQ    Z22, LO, Z14          \
	VPMINUQ   Z14, LO, LO           \
	MOVQ      (24*r)(DI), AX        \
	VMOVDQU64 LO, K1, (AX)(CX*8)

#define KERNEL(R, BEGINS, MULS, ENDS) \
	MOVQ         out+0(FP), DI               \
	MOVQ         in+8(FP), SI                \
	MOVQ         coef+16(FP), DX             \
	MOVQ         inputs+24(FP), R8           \
	MOVQ         n+32(FP), BX                \
	XORQ         CX, CX                      \
	MOVQ         $0xfffffffffffff, AX        \
	VPBROADCASTQ AX, Z20                     \
	MOVQ         $0xffffffff, AX             \
	VPBROADCASTQ AX, Z21                     \
	MOVQ         $0xffffffff00000001, AX     \
	VPBROADCASTQ AX, Z22                     \
	CMPQ         CX, BX                      \
	JGE          done                        \
block: \
	MOVQ         BX, AX                      \
	SUBQ         CX, AX                      \
	MOVQ         $8, R10                     \
	CMPQ         AX, R10                     \
	CMOVQGT      R10, AX                     \
	MOVQ         $-1, R10                    \
	SHLXQ        AX, R10, R10                \
	NOTQ         R10                         \
	KMOVW        R10, K1                     \
	VPXORQ       Z0, Z0, Z0                  \
	VPXORQ       Z1, Z1, Z1                  \
	VPXORQ       Z2, Z2, Z2                  \
	VPXORQ       Z3, Z3, Z3                  \
	VPXORQ       Z4, Z4, Z4                  \
	VPXORQ       Z5, Z5, Z5                  \
	VPXORQ       Z6, Z6, Z6                  \
	VPXORQ       Z7, Z7, Z7                  \
	VPXORQ       Z8, Z8, Z8                  \
	VPXORQ       Z9, Z9, Z9                  \
	VPXORQ       Z10, Z10, Z10               \
	VPXORQ       Z11, Z11, Z11               \
	CMPB         add+40(FP), $0              \
	JEQ          begun                       \
	BEGINS                                   \
begun: \
	MOVQ         SI, R10                     \
	MOVQ         DX, R11                     \
	MOVQ         R8, R12                     \
inputs: \
	MOVQ         (R10), AX                   \
	VMOVDQU64.Z  (AX)(CX*8), K1, Z12         \
	VPSRLQ       $52, Z12, Z13               \
	MULS                                     \
	ADDQ         $24, R10                    \
	ADDQ         $(16*R), R11                \
	DECQ         R12                         \
	JNE          inputs                      \
	ENDS                                     \
	ADDQ         $8, CX                      \
	CMPQ         CX, BX                      \
	JLT          block                       \
done: \
	VZEROUPPER                               \
	RET

#define BEGIN1 BEGIN(Z0, Z1, Z2, 0)
#define BEGIN2 BEGIN1; BEGIN(Z3, Z4, Z5, 1)
#define BEGIN4 BEGIN2; BEGIN(Z6, Z7, Z8, 2); BEGIN(Z9, Z10, Z11, 3)
#define MUL1 MUL(Z0, Z1, Z2, 0)
#define MUL2 MUL1; MUL(Z3, Z4, Z5, 1)
#define MUL4 MUL2; MUL(Z6, Z7, Z8, 2); MUL(Z9, Z10, Z11, 3)
#define END1 END(Z0, Z1, Z2, 0)
#define END2 END1; END(Z3, Z4, Z5, 1)
#define END4 END2; END(Z6, Z7, Z8, 2); END(Z9, Z10, Z11, 3)

// func goldKernel1(out, in *[]byte, coef *uint64, inputs, n int, add bool)
TEXT ·goldKernel1(SB), NOSPLIT, $0-41
	KERNEL(1, BEGIN1, MUL1, END1)

// func goldKernel2(out, in *[]byte, coef *uint64, inputs, n int, add bool)
TEXT ·goldKernel2(SB), NOSPLIT, $0-41
	KERNEL(2, BEGIN2, MUL2, END2)

// func goldKernel4(out, in *[]byte, coef *uint64, inputs, n int, add bool)
TEXT ·goldKernel4(SB), NOSPLIT, $0-41
	KERNEL(4, BEGIN4, MUL4, END4)
