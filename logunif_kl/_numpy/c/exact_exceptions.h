/* Every loop clears the floating-point flags, because unused lanes may raise some. On x86-64 it
 * first saves the flags for `exceptions` (exact_ufuncs.c). */

#ifndef LOGUNIF_KL_EXACT_EXCEPTIONS_H
#define LOGUNIF_KL_EXACT_EXCEPTIONS_H

#ifdef LK_X86

static _Thread_local unsigned exceptions_seen;

static void
forget_exceptions(void)
{
    unsigned state = _mm_getcsr();
    exceptions_seen = state & _MM_EXCEPT_MASK;
    if (exceptions_seen != 0)
        _mm_setcsr(state & ~(unsigned)_MM_EXCEPT_MASK);
}

#else

static void
forget_exceptions(void)
{
    feclearexcept(FE_ALL_EXCEPT);
}

#endif

#endif
