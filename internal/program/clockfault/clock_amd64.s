//go:build fault && linux

#include "textflag.h"

// jumpingClock is called as a C function on a stack of its own: DI has the clock, SI where the time goes.
TEXT jumpingClock<>(SB),NOSPLIT|NOFRAME,$0
	PUSHQ	DI
	PUSHQ	SI
	SUBQ	$8, SP // functions in C want a stack aligned to 16 bytes
	MOVQ	·kernelClock(SB), AX
	CALL	AX
	ADDQ	$8, SP
	POPQ	SI
	POPQ	DI
	CMPL	DI, $0 // CLOCK_REALTIME; others do not jump
	JNE	done
	MOVQ	·seconds(SB), CX
	MOVQ	(CX), CX
	ADDQ	CX, (SI)
done:
	XORL	AX, AX
	RET

TEXT ·jumpingClockAddress(SB),NOSPLIT,$0-8
	LEAQ	jumpingClock<>(SB), AX
	MOVQ	AX, ret+0(FP)
	RET
