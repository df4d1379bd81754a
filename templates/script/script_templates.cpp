#include "templates/script/script_templates.h"

#include <unistd.h>

#include <string_view>

#include "templates/shipped_files.h"

namespace ddl::templates {
namespace {

constexpr std::string_view kTemplateFolder = "slurm/";
constexpr std::string_view kTemplateSuffix = ".mustache";
constexpr std::string_view kFrame = "job.sh";

Result<TemplateText> text_of(const ShippedFile& shipped, const std::vector<std::string>& folders,
                             const ReadTemplate& read_file) {
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + std::string(shipped.path.substr(kTemplateFolder.size()));
    if (::access(path.c_str(), F_OK) != 0) continue;
    auto text = read_file(path);
    if (!text) return fail(std::move(text.error()));
    return TemplateText{path, *std::move(text)};
  }
  return TemplateText{std::string(shipped.path), std::string(shipped.text)};
}

}  // namespace

Result<ScriptTemplates> find_templates(const std::string& frame_file, const std::vector<std::string>& folders,
                                       const ReadTemplate& read_file) {
  ScriptTemplates templates;
  for (const ShippedFile& shipped : shipped_files()) {
    if (!shipped.path.starts_with(kTemplateFolder) || !shipped.path.ends_with(kTemplateSuffix)) continue;
    auto text = text_of(shipped, folders, read_file);
    if (!text) return fail(std::move(text.error()));
    const std::string_view name = shipped.path.substr(
        kTemplateFolder.size(), shipped.path.size() - kTemplateFolder.size() - kTemplateSuffix.size());
    (name == kFrame ? templates.frame : templates.partials[std::string(name)]) = *std::move(text);
  }
  if (frame_file.empty()) return templates;
  auto text = read_file(frame_file);
  if (!text) return fail(std::move(text.error()));
  templates.frame = {frame_file, *std::move(text)};
  return templates;
}

}  // namespace ddl::templates
