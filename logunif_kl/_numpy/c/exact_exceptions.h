/* The floating-point flags: lanes that belong to no element may raise some, so a loop clears them.
 * On x86-64 those that it found are kept for `exceptions` (exact_ufuncs.c). */

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
