// AVX-512 with F, BW, DQ and VL. Compiled with these switched on: see kernels.h for what must not be included here.
#include <immintrin.h>

#include "runtime/src/collective/kernel/table.h"

namespace ddl::runtime {
namespace {

// bfloat16 has instructions of its own (AVX512-BF16), which flush tiny values to zero and are not used. The masked
// forms are for g++ 12, which warns about undefined values in the others (https://gcc.gnu.org/PR105593); no masks are
// left in the generated code.
struct SixteenLanes {
  static constexpr std::size_t kLanes = 16;
  using Floats [[gnu::vector_size(64)]] = float;

  static Floats load(const float* from) { return _mm512_loadu_ps(from); }
  static Floats load(const Float16* from) { return _mm512_maskz_cvtph_ps(kAll, bits_at(from)); }
  static Floats load(const Bfloat16* from) {
    return _mm512_castsi512_ps(
        _mm512_maskz_slli_epi32(kAll, _mm512_maskz_cvtepu16_epi32(kAll, bits_at(from)), 16));
  }

  static void store(float* to, Floats values) { _mm512_storeu_ps(to, values); }
  // For values that have been through one_nan(), these give the same result as Store.
  static void store(Float16* to, Floats values) {
    put_bits(to, _mm512_maskz_cvtps_ph(kAll, values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static void store(Bfloat16* to, Floats values) {
    const Words all = (Words)values;
    const Words rounded = (all + 0x7FFF + (all >> 16 & 1)) >> 16;
    put_bits(to, _mm512_maskz_cvtepi32_epi16(kAll, (__m512i)rounded));
  }

  static void stream_line(const std::byte* from, std::byte* to) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
  }

 private:
  using Words [[gnu::vector_size(64)]] = std::uint32_t;
  static constexpr __mmask16 kAll = 0xFFFF;

  static __m256i bits_at(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
  static void put_bits(void* to, __m256i bits) { _mm256_storeu_si256(static_cast<__m256i*>(to), bits); }
};

}  // namespace

constinit const Kernels kAvx512Kernels = make_kernels<SixteenLanes>();

}  // namespace ddl::runtime
