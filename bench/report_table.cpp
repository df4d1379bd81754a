// A report as text for a terminal.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/text_table.h"
#include "bench/report.h"

namespace ddl::bench {
namespace {

// Two decimals, or four for a small ratio.
std::string ratio_text(double ratio) { return fmt::format("{:.{}f}", ratio, ratio < 0.095 ? 4 : 2); }

std::string spread_text(const Case& one) {
  return one.spread ? fmt::format("±{:.1f}%", (*one.spread - 1) * 100) : std::string("-");
}

std::string text_of(const TextTable& table) { return table.text(TextTable::Align::kRight, "  "); }

// One line per contender, for cases whose contenders differ.
std::string as_list(const Report& report, const Case& one) {
  TextTable table({one.label, "p50", "p99", "CPU", "runs", "against", "ratio", "quartiles", "conclusion"});
  for (const std::string& name : one.contenders) {
    const Contender& contender = report.contender(name);
    const Figures* figures = one.figures_of(name);
    if (figures == nullptr) continue;
    std::vector<std::string> row{contender.label, time_text(figures->p50()), time_text(figures->p99()),
                                 time_text(figures->cpu_seconds_per_run),
                                 fmt::format("{}", figures->count())};
    bool is_first = true;
    for (const Comparison& comparison : one.comparisons) {
      if (comparison.subject != name) continue;
      if (!is_first) row = {"", "", "", "", ""};
      is_first = false;
      row.push_back(report.contender(comparison.peer).label);
      row.push_back(ratio_text(comparison.ratio.ratio));
      row.push_back(ratio_text(comparison.ratio.low) + ".." + ratio_text(comparison.ratio.high));
      row.push_back(conclusion_text(comparison.ratio, comparison.spread));
      table.add(row);
    }
    if (is_first) table.add(row);
  }
  return text_of(table) + fmt::format("  A/A spread: {}\n\n", spread_text(one));
}

// Ours beside the fastest peer of each case, and the peer's time divided by ours.
std::string against_best(const Report& report) {
  TextTable table({"against the best peer", "p50", "p99 / p50", "best peer", "p50", "p99 / p50",
                   "peer / ours", "quartiles", "conclusion"});
  for (const Case& one : report.cases) {
    const Comparison* best = best_peer(one, report.contenders);
    if (best == nullptr) continue;
    const Figures* ours = one.figures_of(best->subject);
    const Figures* theirs = one.figures_of(best->peer);
    table.add({one.label, time_text(ours->p50()), fmt::format("{:.1f}", ours->p99() / ours->p50()),
               report.contender(best->peer).label, time_text(theirs->p50()),
               fmt::format("{:.1f}", theirs->p99() / theirs->p50()),
               fmt::format("{:.2f}", 1 / best->ratio.ratio),
               fmt::format("{:.2f}..{:.2f}", 1 / best->ratio.high, 1 / best->ratio.low),
               conclusion_text(best->ratio, best->spread)});
  }
  return table.is_empty() ? std::string() : text_of(table) + "\n";
}

// One line per case, for cases that share their contenders: percentiles, then comparisons.
std::string as_matrix(const Report& report) {
  std::vector<const Contender*> present;
  for (const Contender& contender : report.contenders) {
    if (!contender.is_excluded() && contender.again_of.empty()) present.push_back(&contender);
  }
  std::vector<std::string> head{"p50 / p99"};
  for (const Contender* contender : present) head.push_back(contender->label);
  TextTable times(head);
  TextTable comparisons(
      {"paired ratios", "subject", "against", "ratio", "quartiles", "A/A spread", "conclusion"});
  for (const Case& one : report.cases) {
    std::vector<std::string> row{one.label};
    for (const Contender* contender : present) {
      const Figures* figures = one.figures_of(contender->name);
      row.push_back(figures == nullptr ? "-" : time_text(figures->p50()) + " / " + time_text(figures->p99()));
    }
    times.add(row);
    for (const Comparison& comparison : one.comparisons) {
      comparisons.add({one.label, report.contender(comparison.subject).label,
                       report.contender(comparison.peer).label, ratio_text(comparison.ratio.ratio),
                       ratio_text(comparison.ratio.low) + ".." + ratio_text(comparison.ratio.high),
                       spread_text(one), conclusion_text(comparison.ratio, comparison.spread)});
    }
  }
  TextTable cpu({"CPU seconds of one run", "all sizes, all processes"});
  for (const Contender* contender : present) {
    for (const Case& one : report.cases) {
      const Figures* figures = one.figures_of(contender->name);
      if (figures == nullptr) continue;
      cpu.add({contender->label, time_text(figures->cpu_seconds_per_run)});
      break;
    }
  }
  const std::string ratios = comparisons.is_empty() ? std::string() : text_of(comparisons) + "\n";
  return text_of(times) + "\n" + ratios + against_best(report) + text_of(cpu) + "\n";
}

bool shares_contenders(const Report& report) {
  return report.cases.size() > 1 &&
         std::all_of(report.cases.begin(), report.cases.end(),
                     [&](const Case& one) { return one.contenders == report.cases[0].contenders; });
}

std::string gauge_value(const Gauge& gauge) {
  if (!gauge.value) return "-";
  if (gauge.unit == "bytes") return fmt::format("{:.1f} MB", *gauge.value / 1e6);
  if (gauge.unit == "seconds") return time_text(*gauge.value);
  return fmt::format("{:.3f}% of a core", *gauge.value * 100);
}

std::string headline(const Report& report) {
  std::vector<std::string> cpus;
  for (const int cpu : report.settings.cpus) cpus.push_back(std::to_string(cpu));
  std::string text = report.title + "\n" + report.method + "\n";
  text += fmt::format(
      "{}; {}; Linux {}; Open MPI {}; {} build; CPUs {}; {}; other programs used {:.0f}% of the machine\n\n",
      report.machine.cpu_model, counted(report.machine.cpus, "CPU"), report.machine.kernel,
      report.machine.open_mpi.empty() ? "absent" : report.machine.open_mpi, report.machine.build_type,
      join(cpus, ","), counted(report.settings.blocks, "ABBA block"), report.other_load * 100);
  if (report.machine.build_type != "Release") {
    text += "Not a plain release build: these figures are not those of the released programs.\n\n";
  }
  return text;
}

}  // namespace

std::string as_table(const Report& report) {
  std::string text = headline(report);
  if (shares_contenders(report)) {
    text += as_matrix(report);
  } else {
    for (const Case& one : report.cases) text += as_list(report, one);
  }
  for (const Contender& contender : report.contenders) {
    if (!contender.is_excluded() && contender.failed_runs > 0) {
      text += fmt::format("{} ({}): {} failed and had to be repeated: {}\n", contender.label, contender.name,
                          counted(contender.failed_runs, "run"), contender.last_failure);
    }
    if (contender.is_excluded())
      text += fmt::format("{} ({}) {}\n", contender.label, contender.name, contender.why_excluded());
  }
  for (const std::string& remark : report.remarks) text += remark + "\n";
  for (const Gauge& gauge : report.gauges) {
    text += fmt::format("{}: {}{}\n", gauge.label, gauge_value(gauge),
                        gauge.note.empty() ? "" : " (" + gauge.note + ")");
  }
  if (!report.aims.empty()) text += "\n";
  for (const Aim& aim : report.aims) {
    text += fmt::format("{:<8} {}: {}\n",
                        !aim.met   ? "unknown"
                        : *aim.met ? "met"
                                   : "MISSED",
                        aim.text, aim.found);
  }
  return text;
}

}  // namespace ddl::bench
