/* Conversions between IEEE half precision and float, by their bits. */

#ifndef LOGUNIF_KL_EXACT_HALF_H
#define LOGUNIF_KL_EXACT_HALF_H

static float
float_from_half(npy_half h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu, bits;
    float value;
    if (rest >= 0x7c00u) {
        bits = 0x7f800000u | (rest << 13);
        memcpy(&value, &bits, sizeof value);
    } else if (rest >= 0x0400u) {
        bits = (rest << 13) + ((127u - 15u) << 23);
        memcpy(&value, &bits, sizeof value);
    } else {
        value = (float)rest * 0x1p-24f;
    }
    memcpy(&bits, &value, sizeof bits);
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Round to nearest, ties to even. */
static npy_half
half_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = (bits >> 16) & 0x8000u, rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) /* NaN: keep the upper bits of the payload */
        return (npy_half)(sign | 0x7e00u | ((rest >> 13) & 0x03ffu));
    if (rest >= 0x477ff000u) /* 65520 and above */
        return (npy_half)(sign | 0x7c00u);
    if (rest <= 0x33000000u) /* 2^-25 and below */
        return (npy_half)sign;
    if (rest < 0x38800000u) { /* below 2^-14: adding 0.5 rounds to a multiple of 2^-24 */
        float magnitude;
        memcpy(&magnitude, &rest, sizeof magnitude);
        magnitude += 0.5f;
        memcpy(&rest, &magnitude, sizeof rest);
        return (npy_half)(sign | (rest - 0x3f000000u));
    }
    rest += 0xfffu + ((rest >> 13) & 1u);
    return (npy_half)(sign | ((rest - ((127u - 15u) << 23)) >> 13));
}

#endif
