"""The arithmetic of ``_arithmetic`` in float32, as device functions in Triton.

Written by ``python -m validation.codegen``, which runs ``_arithmetic`` on symbols: do not edit.
"""

# mypy: ignore-errors

import triton
import triton.language as tl

from .elementary import (
    bits,
    exp,
    from_integer,
    inverse,
    left,
    maximum,
    minimum,
    quotient,
    right,
    unbits,
)


@triton.jit
def value(mu, log_sigma2):
    """-KL of N(mu, sigma^2)."""
    t0 = tl.abs(mu)
    t1 = t0 - log_sigma2
    t2 = -log_sigma2
    t3 = minimum(t1, t2)
    t4 = maximum(t3, -290.0)
    n5 = bits(t0)
    t6 = from_integer(n5)
    t7 = t6 * 1.6525917e-07
    t8 = 234.9769 - t7
    t9 = minimum(t4, t8)
    t10 = t4 - t9
    t11 = t9 * 1.442695
    t12 = t11 + 12582976.0
    t13 = t12 - 12582976.0
    n14 = bits(t12)
    t15 = t13 * -0.69314575
    t16 = t15 + t9
    t17 = t13 * -1.4286068e-06
    t18 = t17 + t16
    n19 = right(n14, 7)
    n20 = left(n19, 28)
    n21 = n20 + 1065353216
    t22 = unbits(n21)
    n23 = n14 & 127
    n24 = left(n23, 23)
    n25 = n24 + 520093696
    t26 = unbits(n25)
    t27 = t18 * 0.0013837826
    t28 = t27 + 0.008369162
    t29 = t28 * t18
    t30 = t29 + 0.041668102
    t31 = t30 * t18
    t32 = t31 + 0.16666517
    t33 = t32 * t18
    t34 = t33 + 0.49999994
    t35 = t34 * t18
    t36 = t35 + 1.0
    t37 = t36 * t18
    t38 = t37 + 1.0
    t39 = t38 * t26
    t40 = mu * t22
    t41 = t40 * t22
    t42 = t41 * t39
    t43 = t41 * t42
    t44 = t43 * -3.7952368e-06
    t45 = t44 + 5.7218414e-05
    t46 = t45 * t43
    t47 = t46 + -0.0004982636
    t48 = t47 * t43
    t49 = t48 + 0.0033743319
    t50 = t49 * t43
    t51 = t50 + -0.019042397
    t52 = t51 * t43
    t53 = t52 + 0.08888779
    t54 = t53 * t43
    t55 = t54 + -0.33333325
    t56 = t55 * t43
    t57 = t10 * 1.1754944e-38
    t58 = t57 + t39
    t59 = t58 * t56
    t60 = t59 + t58
    t61 = t41 * t60
    t62 = t41 * t61
    t63 = t43 + 5.0
    n64 = bits(t63)
    n65 = n64 - 1060439296
    n66 = right(n65, 23)
    n67 = left(n66, 23)
    n68 = n64 - n67
    t69 = unbits(n68)
    t70 = t69 - 1.0
    t71 = from_integer(n66)
    t72 = t10 * 0.5
    t73 = t72 + 0.981755
    t74 = t63 * 2.4074124e-35
    t75 = t74 + t73
    t76 = inverse(t63)
    t77 = t76 - 0.08886719
    t78 = t77 * -42870480000.0
    t79 = t78 + -40883397000.0
    t80 = t79 * t77
    t81 = t80 + -1025014460.0
    t82 = t81 * t77
    t83 = t82 + 832802750.0
    t84 = t83 * t77
    t85 = t84 + 10098329.0
    t86 = t85 * t77
    t87 = t86 + -9450930.0
    t88 = t87 * t77
    t89 = t88 + 63447.855
    t90 = t89 * t77
    t91 = t90 + 96605.1
    t92 = t91 * t77
    t93 = t92 + 370.06335
    t94 = t93 * t77
    t95 = t94 + -1205.1862
    t96 = t95 * t77
    t97 = t96 + -169.93369
    t98 = t97 * t77
    t99 = t98 + -20.591587
    t100 = t99 * t77
    t101 = t100 + -3.8371525
    t102 = t101 * t76
    t103 = t102 + t75
    t104 = t70 * 0.043613378
    t105 = t104 + -0.07183593
    t106 = t105 * t70
    t107 = t106 + 0.07476161
    t108 = t107 * t70
    t109 = t108 + -0.08281178
    t110 = t109 * t70
    t111 = t110 + 0.09978413
    t112 = t111 * t70
    t113 = t112 + -0.12501037
    t114 = t113 * t70
    t115 = t114 + 0.16667093
    t116 = t115 * t70
    t117 = t116 + -0.24999994
    t118 = t117 * t70
    t119 = t118 + 0.5
    t120 = t119 * t70
    t121 = t120 + t103
    m122 = t43 >= 1.75
    t123 = t71 * 0.3465736
    t124 = t123 + t121
    t125 = tl.where(m122, t124, t62)
    return -t125


@triton.jit
def gradient(mu, log_sigma2):
    """The derivatives of -KL in mu and in log_sigma2."""
    t0 = tl.abs(mu)
    t1 = t0 - log_sigma2
    t2 = -log_sigma2
    t3 = minimum(t1, t2)
    t4 = maximum(t3, -290.0)
    n5 = bits(t0)
    t6 = from_integer(n5)
    t7 = t6 * 1.6525917e-07
    t8 = 234.9769 - t7
    t9 = minimum(t4, t8)
    t10 = t4 - t9
    t11 = t9 * 1.442695
    t12 = t11 + 12582976.0
    t13 = t12 - 12582976.0
    n14 = bits(t12)
    t15 = t13 * -0.69314575
    t16 = t15 + t9
    t17 = t13 * -1.4286068e-06
    t18 = t17 + t16
    n19 = right(n14, 7)
    n20 = left(n19, 28)
    n21 = n20 + 1065353216
    t22 = unbits(n21)
    n23 = n14 & 127
    n24 = left(n23, 23)
    n25 = n24 + 520093696
    t26 = unbits(n25)
    t27 = t18 * 0.0013837826
    t28 = t27 + 0.008369162
    t29 = t28 * t18
    t30 = t29 + 0.041668102
    t31 = t30 * t18
    t32 = t31 + 0.16666517
    t33 = t32 * t18
    t34 = t33 + 0.49999994
    t35 = t34 * t18
    t36 = t35 + 1.0
    t37 = t36 * t18
    t38 = t37 + 1.0
    t39 = t38 * t26
    t40 = mu * t22
    t41 = t40 * t22
    t42 = t41 * t39
    t43 = t41 * t42
    t44 = t10 * 1.1754944e-38
    t45 = t44 + t39
    t46 = t43 * 0.00031361124
    t47 = t46 + -0.0028957045
    t48 = t47 * t43
    t49 = t48 + 0.016824158
    t50 = t49 * t43
    t51 = t50 + -0.076158084
    t52 = t51 * t43
    t53 = t52 + 0.2666621
    t54 = t53 * t43
    t55 = t54 + -0.66666645
    t56 = t55 * t43
    t57 = t45 * t56
    t58 = t57 + t45
    t59 = t43 + 7.0
    t60 = inverse(t59)
    t61 = t60 - 0.057128906
    t62 = t61 * -1653002300000000.0
    t63 = t62 + 3423012200000000.0
    t64 = t63 * t61
    t65 = t64 + 319914530000000.0
    t66 = t65 * t61
    t67 = t66 + -23359341000000.0
    t68 = t67 * t61
    t69 = t68 + -2563714000000.0
    t70 = t69 * t61
    t71 = t70 + 82702310000.0
    t72 = t71 * t61
    t73 = t72 + 11638420000.0
    t74 = t73 * t61
    t75 = t74 + -123428420.0
    t76 = t75 * t61
    t77 = t76 + -42920744.0
    t78 = t77 * t61
    t79 = t78 + -1361411.2
    t80 = t79 * t61
    t81 = t80 + 28899.723
    t82 = t81 * t61
    t83 = t82 + 3944.2136
    t84 = t83 * t61
    t85 = t84 + 203.13698
    t86 = t85 * t61
    t87 = t86 + 9.44809
    t88 = t87 * t61
    t89 = t88 + 0.49977487
    t90 = t89 * t60
    t91 = t90 + 0.5
    m92 = t43 >= 3.5
    t93 = t43 - 1.859375
    t94 = t93 * 7.76014e-07
    t95 = t94 + -8.753033e-06
    t96 = t95 * t93
    t97 = t96 + 6.469954e-05
    t98 = t97 * t93
    t99 = t98 + -0.0004063854
    t100 = t99 * t93
    t101 = t100 + 0.0021546108
    t102 = t101 * t93
    t103 = t102 + -0.009173746
    t104 = t103 * t93
    t105 = t104 + 0.029131101
    t106 = t105 * t93
    t107 = t106 + -0.058761388
    t108 = t107 * t93
    t109 = t108 + 0.034905292
    t110 = t109 * t93
    t111 = t110 + -2.1501236e-09
    t112 = t111 + 0.636164
    t113 = tl.where(m92, t91, t112)
    m114 = t43 >= 0.875
    t115 = t41 * t58
    t116 = t41 * t115
    t117 = tl.where(m114, t113, t116)
    t118 = t22 * -2.0
    t119 = t113 * t118
    t120 = quotient(t119, t41)
    t121 = t58 * t118
    t122 = t41 * t121
    t123 = tl.where(m114, t120, t122)
    t124 = t123 * t22
    return t124, t117


@triton.jit
def neg_kl(x):
    """-KL at log_alpha = x."""
    m0 = x <= -0.91629076
    m1 = x <= -1.9459101
    m2 = x <= -2.4849067
    m3 = x <= -3.1780539
    t4 = -x
    t5 = tl.where(m1, x, t4)
    t6 = exp(t5)
    t7 = t6 * 2.0
    t8 = t6 * 0.5
    t9 = tl.where(m1, t7, t8)
    t10 = tl.where(m0, 2.375, 0.0)
    t11 = tl.where(m1, 0.2265625, t10)
    t12 = tl.where(m2, 0.125, t11)
    t13 = tl.where(m3, 0.0, t12)
    t14 = t9 - t13
    t15 = tl.where(m0, 8.959771e-07, -1.1914074e-06)
    t16 = tl.where(m1, 565.8949, t15)
    t17 = tl.where(m2, -16739.117, t16)
    t18 = tl.where(m3, -24977.281, t17)
    t19 = t18 * t14
    t20 = tl.where(m0, -7.787782e-06, 1.0695549e-05)
    t21 = tl.where(m1, 72.64816, t20)
    t22 = tl.where(m2, -119.21959, t21)
    t23 = tl.where(m3, 7731.4473, t22)
    t24 = t19 + t23
    t25 = t24 * t14
    t26 = tl.where(m0, 5.907047e-05, -7.39445e-05)
    t27 = tl.where(m1, -68.22071, t26)
    t28 = tl.where(m2, 438.37552, t27)
    t29 = tl.where(m3, -862.1022, t28)
    t30 = t25 + t29
    t31 = t30 * t14
    t32 = tl.where(m0, -0.00040787947, 0.0005199956)
    t33 = tl.where(m1, 16.0033, t32)
    t34 = tl.where(m2, -28.553911, t33)
    t35 = tl.where(m3, 53.695934, t34)
    t36 = t31 + t35
    t37 = t36 * t14
    t38 = tl.where(m0, 0.0024537095, -0.0033903695)
    t39 = tl.where(m1, 0.6927385, t38)
    t40 = tl.where(m2, -9.945618, t39)
    t41 = tl.where(m3, -0.7791619, t40)
    t42 = t37 + t41
    t43 = t42 * t14
    t44 = tl.where(m0, -0.012759375, 0.019048925)
    t45 = tl.where(m1, -1.7433937, t44)
    t46 = tl.where(m2, 0.59709615, t45)
    t47 = tl.where(m3, 0.33931908, t46)
    t48 = t43 + t47
    t49 = t48 * t14
    t50 = tl.where(m0, 0.05833775, -0.088889085)
    t51 = tl.where(m1, 0.17215094, t50)
    t52 = tl.where(m2, 0.48485914, t51)
    t53 = tl.where(m3, 0.1872876, t52)
    t54 = t49 + t53
    t55 = tl.where(m0, -0.27029717, 0.33333334)
    t56 = tl.where(m1, 0.40546954, t55)
    t57 = tl.where(m2, 0.3263407, t56)
    t58 = tl.where(m3, 0.25000057, t57)
    t59 = tl.where(m0, -1.265823, -1.0)
    t60 = tl.where(m1, -0.5622293, t59)
    t61 = tl.where(m2, -0.5999807, t60)
    t62 = tl.where(m3, -0.6351814, t61)
    t63 = t54 * t14
    t64 = t63 + t58
    t65 = t14 * t64
    t66 = tl.where(m0, -3.9021444e-08, 0.0)
    t67 = tl.where(m1, 1.35658835e-08, t66)
    t68 = tl.where(m2, 6.5830413e-10, t67)
    t69 = tl.where(m3, 4.271214e-09, t68)
    t70 = t65 + t69
    t71 = t62 + t70
    m72 = ~m0
    t73 = tl.where(m72, t9, 1.0)
    t74 = t73 * t71
    t75 = x * 0.5
    t76 = t75 + t71
    m77 = x == x
    t78 = tl.where(m77, t74, x)
    return tl.where(m1, t76, t78)


@triton.jit
def neg_kl_grad(x):
    """Its derivative."""
    m0 = x <= -0.5596158
    m1 = x <= -1.609438
    m2 = x <= -2.1400661
    m3 = x <= -2.6741486
    m4 = x <= -3.4011974
    t5 = -x
    t6 = tl.where(m1, x, t5)
    t7 = exp(t6)
    t8 = t7 * 2.0
    t9 = t7 * 0.5
    t10 = tl.where(m1, t8, t9)
    t11 = tl.where(m0, 1.6875, 0.0)
    t12 = tl.where(m1, 0.3173828, t11)
    t13 = tl.where(m2, 0.18652344, t12)
    t14 = tl.where(m3, 0.10253906, t13)
    t15 = tl.where(m4, 0.0, t14)
    t16 = t10 - t15
    t17 = tl.where(m0, -1.0765069e-05, 2.0467445e-05)
    t18 = tl.where(m1, -467.93927, t17)
    t19 = tl.where(m2, 10095.42, t18)
    t20 = tl.where(m3, -313425.3, t19)
    t21 = tl.where(m4, -106734.69, t20)
    t22 = t21 * t16
    t23 = tl.where(m0, 7.909352e-05, -0.00011409886)
    t24 = tl.where(m1, 20.556696, t23)
    t25 = tl.where(m2, 1343.2136, t24)
    t26 = tl.where(m3, 9752.967, t25)
    t27 = tl.where(m4, 32402.65, t26)
    t28 = t22 + t27
    t29 = t28 * t16
    t30 = tl.where(m0, -0.00049067475, 0.00054872327)
    t31 = tl.where(m1, 50.52997, t30)
    t32 = tl.where(m2, -796.5304, t31)
    t33 = tl.where(m3, 4201.2607, t32)
    t34 = tl.where(m4, -3214.732, t33)
    t35 = t29 + t34
    t36 = t35 * t16
    t37 = tl.where(m0, 0.0026153603, -0.0031350781)
    t38 = tl.where(m1, -25.97115, t37)
    t39 = tl.where(m2, 110.14076, t38)
    t40 = tl.where(m3, -288.37076, t39)
    t41 = tl.where(m4, 183.74702, t40)
    t42 = t36 + t41
    t43 = t42 * t16
    t44 = tl.where(m0, -0.011217999, 0.01695467)
    t45 = tl.where(m1, 6.6874833, t44)
    t46 = tl.where(m2, 13.3685465, t45)
    t47 = tl.where(m3, -54.800785, t46)
    t48 = tl.where(m4, -1.3774431, t47)
    t49 = t43 + t48
    t50 = t49 * t16
    t51 = tl.where(m0, 0.03611814, -0.07619568)
    t52 = tl.where(m1, 0.47116604, t51)
    t53 = tl.where(m2, -7.6645346, t52)
    t54 = tl.where(m3, 2.2602608, t53)
    t55 = tl.where(m4, 1.0053601, t54)
    t56 = t50 + t55
    t57 = t56 * t16
    t58 = tl.where(m0, -0.07552297, 0.26666722)
    t59 = tl.where(m1, -1.2783501, t58)
    t60 = tl.where(m2, -0.0926568, t59)
    t61 = tl.where(m3, 1.2237011, t60)
    t62 = tl.where(m4, 0.37453482, t61)
    t63 = t57 + t62
    t64 = tl.where(m0, 0.05788228, -0.6666667)
    t65 = tl.where(m1, 0.27008072, t64)
    t66 = tl.where(m2, 0.52334887, t65)
    t67 = tl.where(m3, 0.39186874, t66)
    t68 = tl.where(m4, 0.25000107, t67)
    t69 = tl.where(m0, 0.62827253, 1.0)
    t70 = tl.where(m1, 0.6266497, t69)
    t71 = tl.where(m2, 0.57150763, t70)
    t72 = tl.where(m3, 0.53136295, t71)
    t73 = tl.where(m4, 0.5, t72)
    t74 = t63 * t16
    t75 = t74 + t68
    t76 = t16 * t75
    t77 = tl.where(m0, 4.7711577e-09, 0.0)
    t78 = tl.where(m1, -1.7836008e-08, t77)
    t79 = tl.where(m2, -2.8864504e-08, t78)
    t80 = tl.where(m3, -1.1022041e-08, t79)
    t81 = tl.where(m4, 0.0, t80)
    t82 = t76 + t81
    t83 = t73 + t82
    m84 = ~m0
    t85 = tl.where(m84, t10, 1.0)
    return t85 * t83


@triton.jit
def neg_kl_hess(x):
    """Its second derivative."""
    m0 = x <= -0.22314355
    m1 = x <= -0.8109302
    m2 = x <= -1.9459101
    m3 = x <= -2.4849067
    m4 = x <= -2.944439
    m5 = x <= -3.583519
    t6 = -x
    t7 = tl.where(m3, x, t6)
    t8 = exp(t7)
    t9 = t8 * 2.0
    t10 = t8 * 0.5
    t11 = tl.where(m3, t9, t10)
    t12 = tl.where(m0, 0.875, 0.0)
    t13 = tl.where(m1, -1.5067093, t12)
    t14 = tl.where(m2, 4.75, t13)
    t15 = tl.where(m3, 0.13574219, t14)
    t16 = tl.where(m4, 0.080078125, t15)
    t17 = tl.where(m5, 0.0, t16)
    t18 = t11 - t17
    m19 = ~m2
    m20 = m1 & m19
    t21 = x - t17
    t22 = t21 - -1.8005332e-08
    t23 = tl.where(m20, t22, t18)
    t24 = tl.where(m0, 0.24455145, 0.040317573)
    t25 = tl.where(m1, -0.0015919511, t24)
    t26 = tl.where(m2, -3.0752796e-09, t25)
    t27 = tl.where(m3, 1079365900.0, t26)
    t28 = tl.where(m4, -141722730000.0, t27)
    t29 = tl.where(m5, -2382991000.0, t28)
    t30 = t29 * t23
    t31 = tl.where(m0, -0.003862381, -0.14060575)
    t32 = tl.where(m1, 0.0051942747, t31)
    t33 = tl.where(m2, 2.5965946e-08, t32)
    t34 = tl.where(m3, 293858900.0, t33)
    t35 = tl.where(m4, 8698281000.0, t34)
    t36 = tl.where(m5, -8875820000.0, t35)
    t37 = t30 + t36
    t38 = t37 * t23
    t39 = tl.where(m0, -0.037686136, 0.21193337)
    t40 = tl.where(m1, -0.0021212485, t39)
    t41 = tl.where(m2, -1.7344416e-07, t40)
    t42 = tl.where(m3, -51343268.0, t41)
    t43 = tl.where(m4, 546815940.0, t42)
    t44 = tl.where(m5, 2121457300.0, t43)
    t45 = t38 + t44
    t46 = t45 * t23
    t47 = tl.where(m0, 0.0007409391, -0.1807133)
    t48 = tl.where(m1, -0.01764827, t47)
    t49 = tl.where(m2, 9.854663e-07, t48)
    t50 = tl.where(m3, 1745403.8, t49)
    t51 = tl.where(m4, -82047550.0, t50)
    t52 = tl.where(m5, -202899310.0, t51)
    t53 = t46 + t52
    t54 = t53 * t23
    t55 = tl.where(m0, 0.0008466262, 0.0961695)
    t56 = tl.where(m1, 0.030829016, t55)
    t57 = tl.where(m2, -3.8747576e-06, t56)
    t58 = tl.where(m3, 575356.0, t57)
    t59 = tl.where(m4, 612151.56, t58)
    t60 = tl.where(m5, 10617580.0, t59)
    t61 = t54 + t60
    t62 = t61 * t23
    t63 = tl.where(m0, 0.006000789, -0.035858367)
    t64 = tl.where(m1, 0.02217424, t63)
    t65 = tl.where(m2, 3.445263e-06, t64)
    t66 = tl.where(m3, -110951.78, t65)
    t67 = tl.where(m4, 465316.2, t66)
    t68 = tl.where(m5, -325813.88, t67)
    t69 = t62 + t68
    t70 = t69 * t23
    t71 = tl.where(m0, -0.026150808, 0.025571618)
    t72 = tl.where(m1, -0.112208106, t71)
    t73 = tl.where(m2, 8.9612084e-05, t72)
    t74 = tl.where(m3, 4401.364, t73)
    t75 = tl.where(m4, -13431.459, t74)
    t76 = tl.where(m5, 6775.6953, t75)
    t77 = t70 + t76
    t78 = t77 * t23
    t79 = tl.where(m0, 0.08583121, -0.08561841)
    t80 = tl.where(m1, 0.027873958, t79)
    t81 = tl.where(m2, -0.00080439466, t80)
    t82 = tl.where(m3, 1392.6697, t81)
    t83 = tl.where(m4, -2709.7168, t82)
    t84 = tl.where(m5, 1.5799946, t83)
    t85 = t78 + t84
    t86 = t85 * t23
    t87 = tl.where(m0, -0.1897063, 0.3048372)
    t88 = tl.where(m1, 0.2377016, t87)
    t89 = tl.where(m2, 0.0036079865, t88)
    t90 = tl.where(m3, -177.38602, t89)
    t91 = tl.where(m4, -0.13538022, t90)
    t92 = tl.where(m5, 13.593268, t91)
    t93 = t86 + t92
    t94 = t93 * t23
    t95 = tl.where(m0, 0.1984122, -0.80000293)
    t96 = tl.where(m1, -0.12139754, t95)
    t97 = tl.where(m2, -0.0072623948, t96)
    t98 = tl.where(m3, -16.148663, t97)
    t99 = tl.where(m4, 14.884394, t98)
    t100 = tl.where(m5, 2.8110168, t99)
    t101 = t94 + t100
    t102 = tl.where(m0, 0.11220932, 1.3333334)
    t103 = tl.where(m1, -0.32118735, t102)
    t104 = tl.where(m2, -0.011499396, t103)
    t105 = tl.where(m3, 2.1080544, t104)
    t106 = tl.where(m4, 1.9038823, t105)
    t107 = tl.where(m5, 0.7500016, t106)
    t108 = tl.where(m0, -0.24773626, -1.0)
    t109 = tl.where(m1, 0.0, t108)
    t110 = tl.where(m2, 0.10663993, t109)
    t111 = tl.where(m3, 0.47182646, t110)
    t112 = tl.where(m4, 0.3423076, t111)
    t113 = tl.where(m5, 0.25, t112)
    t114 = t101 * t23
    t115 = t114 + t107
    t116 = t23 * t115
    t117 = tl.where(m0, -1.6260112e-09, 0.0)
    t118 = tl.where(m1, 0.0, t117)
    t119 = tl.where(m2, -4.9820287e-11, t118)
    t120 = tl.where(m3, -3.7967314e-09, t119)
    t121 = tl.where(m4, 8.5241586e-10, t120)
    t122 = tl.where(m5, 0.0, t121)
    t123 = t116 + t122
    t124 = t113 + t123
    m125 = ~m0
    m126 = m125 | m3
    t127 = tl.where(m126, t11, 1.0)
    return t127 * t124
