#include "bench/aims.h"

#include <fmt/format.h>

namespace ddl::bench {

Aim ratio_aim(const Report& report, const std::string& text, const Pairing& pairing, double limit) {
  for (const Case& one : report.cases) {
    const Comparison* found = one.comparison(pairing.subject, pairing.peer);
    if (found == nullptr) continue;
    const bool met =
        limit == 1 ? judge(found->ratio, found->spread) != Verdict::kSlower : found->ratio.ratio <= limit;
    return {text, fmt::format("{:.2f}x, {}", found->ratio.ratio, verdict_text(found->ratio, found->spread)),
            met};
  }
  return {text, "one of the two is absent", std::nullopt};
}

Aim gauge_aim(const Report& report, const std::string& text, const std::string& gauge_name, double limit,
              const char* unit, double scale) {
  for (const Gauge& gauge : report.gauges) {
    if (gauge.name != gauge_name) continue;
    if (!gauge.value) return {text, gauge.note, std::nullopt};
    return {text, fmt::format("{:.3g} {}", *gauge.value * scale, unit), *gauge.value < limit};
  }
  return {text, "not measured", std::nullopt};
}

}  // namespace ddl::bench
