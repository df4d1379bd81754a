// AVX2 and F16C. Compiled with these switched on: see kernels.h for what must not be included here.
#include <immintrin.h>

#include "runtime/src/collective/kernel/table.h"

namespace ddl::runtime {
namespace {

struct EightLanes {
  static constexpr std::size_t kLanes = 8;
  using Floats [[gnu::vector_size(32)]] = float;

  static Floats load(const float* from) { return _mm256_loadu_ps(from); }
  static Floats load(const Float16* from) { return _mm256_cvtph_ps(bits_at(from)); }
  static Floats load(const Bfloat16* from) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits_at(from)), 16));
  }

  static void store(float* to, Floats values) { _mm256_storeu_ps(to, values); }
  // For values that have been through one_nan(), these give the same result as Store.
  static void store(Float16* to, Floats values) {
    put_bits(to, _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static void store(Bfloat16* to, Floats values) {
    const Words all = (Words)values;
    const __m256i rounded = (__m256i)((all + 0x7FFF + (all >> 16 & 1)) >> 16);
    put_bits(to, _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1)));
  }

  static void stream_line(const std::byte* from, std::byte* to) {
    const auto* source = reinterpret_cast<const __m256i*>(from);
    auto* target = reinterpret_cast<__m256i*>(to);
    const __m256i low = _mm256_loadu_si256(source), high = _mm256_loadu_si256(source + 1);
    _mm256_stream_si256(target, low);
    _mm256_stream_si256(target + 1, high);
  }

 private:
  using Words [[gnu::vector_size(32)]] = std::uint32_t;

  static __m128i bits_at(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
  static void put_bits(void* to, __m128i bits) { _mm_storeu_si128(static_cast<__m128i*>(to), bits); }
};

}  // namespace

constinit const Kernels kAvx2Kernels = make_kernels<EightLanes>();

}  // namespace ddl::runtime
