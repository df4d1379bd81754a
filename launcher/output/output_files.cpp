#include "launcher/output/output_files.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/fd.h"

namespace ddl::launcher {
namespace {

UniqueFd open_to_append(const std::string& path) {
  return UniqueFd(retry_eintr(
      [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666); }));
}

/// The files themselves; used by the thread alone once it runs.
class AppendedFiles {
 public:
  AppendedFiles(std::vector<std::string> paths, std::function<void(const std::string&)> on_error)
      : paths_(std::move(paths)), files_(paths_.size()), on_error_(std::move(on_error)) {}

  /// Opens every file once; as many as may stay open do.
  Status open_all() {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (!open(i)) return fail(errno_error("open", errno).during("creating " + paths_[i]));
    }
    return {};
  }

  /// Returns what is to be posted, if anything.
  std::function<void()> append(int index, const std::string& bytes) {
    File& file = files_[index];
    if (file.is_broken) return nullptr;
    int error = 0;
    if (!file.fd && !open(index)) {
      error = errno;
    } else if (const Status written = write_all(file.fd.get(), bytes.data(), bytes.size()); !written) {
      error = written.error().system_errno();
    }
    if (error == 0) return nullptr;
    file.is_broken = true;
    return std::exchange(has_failed_, true) ? nullptr : report(index, error);
  }

 private:
  struct File {
    UniqueFd fd;
    bool is_broken = false;
  };

  bool open(std::size_t index) {
    if (open_.size() >= OutputFiles::kOpenFiles) {
      files_[open_.front()].fd.reset();
      open_.pop_front();
    }
    files_[index].fd = open_to_append(paths_[index]);
    if (!files_[index].fd) return false;
    open_.push_back(index);
    return true;
  }

  std::function<void()> report(std::size_t index, int error) const {
    std::string sentence = "cannot write " + paths_[index] + ": " + std::strerror(error) +
                           "; from here on it is incomplete, and the job goes on";
    return [on_error = on_error_, sentence = std::move(sentence)] { on_error(sentence); };
  }

  std::vector<std::string> paths_;
  std::vector<File> files_;
  std::deque<std::size_t> open_;  // oldest first
  bool has_failed_ = false;
  std::function<void(const std::string&)> on_error_;
};

}  // namespace

class OutputFiles::File : public Sink {
 public:
  File(WriterThread* thread, int index) : thread_(thread), index_(index) {}
  void write(std::string bytes, std::function<void()> done) override {
    thread_->push(index_, std::move(bytes), std::move(done));
  }

 private:
  WriterThread* thread_;
  int index_;
};

std::string rank_directory_name(int rank, int num_ranks) {
  const std::string number = std::to_string(rank);
  const std::size_t width = std::to_string(num_ranks - 1).size();
  return "rank." + std::string(width - std::min(width, number.size()), '0') + number;
}

std::vector<std::string> rank_directory_names(int num_ranks) {
  std::vector<std::string> names;
  for (int rank = 0; rank < num_ranks; ++rank) names.push_back(rank_directory_name(rank, num_ranks));
  return names;
}

Result<std::unique_ptr<OutputFiles>> OutputFiles::create(const std::string& directory,
                                                         const std::vector<std::string>& names, Post post,
                                                         std::function<void(const std::string&)> on_error) {
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    const std::filesystem::path folder = std::filesystem::path(directory) / name;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return fail(errno_error("mkdir", error.value()).during("creating " + folder.string()));
    paths.push_back((folder / "stdout").string());
    paths.push_back((folder / "stderr").string());
  }
  auto files = std::make_shared<AppendedFiles>(std::move(paths), std::move(on_error));
  DDL_TRY(files->open_all());
  auto write = [files](int index, const std::string& bytes) { return files->append(index, bytes); };
  DDL_ASSIGN(thread, WriterThread::start(std::move(write), std::move(post)));
  return std::unique_ptr<OutputFiles>(new OutputFiles(2 * names.size(), std::move(thread)));
}

OutputFiles::OutputFiles(std::size_t num_files, WriterThread thread) : thread_(std::move(thread)) {
  for (std::size_t index = 0; index < num_files; ++index) sinks_.emplace_back(&thread_, index);
}

OutputFiles::~OutputFiles() = default;

Sink* OutputFiles::sink(int rank, OutputStream stream) {
  return &sinks_[2 * rank + (stream == OutputStream::kStderr ? 1 : 0)];
}

}  // namespace ddl::launcher
