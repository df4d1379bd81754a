// A training loop that goes on when ranks are lost, come or leave: for ddlrun --elastic continue.
#ifndef DDL_ELASTIC_HPP
#define DDL_ELASTIC_HPP

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "ddl/ddl.hpp"
#include "ddl/shards.hpp"

namespace ddl::detail {

/// Closes it at its end; -1: none.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

 private:
  int fd_;
};

/// Who holds the lock of this descriptor's file, as words.
inline std::string holder_of(int lock) {
  struct statx status = {};  // fstat's device number could be read only with macros named major and minor
  if (::statx(lock, "", AT_EMPTY_PATH, STATX_INO, &status) != 0) return "another process";
  char file[64];
  std::snprintf(file, sizeof file, "%02x:%02x:%llu", status.stx_dev_major, status.stx_dev_minor,
                static_cast<unsigned long long>(status.stx_ino));
  std::ifstream locks("/proc/locks");
  std::string number, kind, advisory, access, pid, locked;
  while (locks >> number >> kind >> advisory >> access >> pid >> locked) {
    if (kind == "FLOCK" && locked == file) return "process " + pid + " of this host";
    std::getline(locks, locked);
  }
  return "another process";
}

}  // namespace ddl::detail

namespace ddl::elastic {

class State;

/// What main() returns if run() has returned false.
inline constexpr int kDrained = DDL_ELASTIC_EXIT_DRAINED;

/// Calls function(Generation&) until it returns: again after a rank was lost, with the state as it was at the last
/// commit(), and after the job has changed. In a job that is not elastic once, and errors go to the caller; so do all that
/// no lost rank has caused. Errors of libddl that all ranks would make again (DDL_ERROR_MISMATCH,
/// DDL_ERROR_INVALID_ARGUMENT) end the job. timeout_seconds: as of Context.
/// With ddlrun --state-dir the state is what an earlier job has left there, if there is one. False: the job was asked to
/// end, and rank 0 has written the state there. If the function returns, the state is removed from there.
template <class Function>
bool run(State& state, Function function, double timeout_seconds = 0.0);

/// What a program goes on from: some of its variables, of which commit() keeps a copy in memory. It refers to them, so
/// they outlive it. All ranks add the same ones in the same order. One thread.
class State {
 public:
  /// A variable that can be copied as bytes, or a container of such elements that is contiguous (std::vector). The size
  /// of a container must not change any more.
  template <class T>
  void add(T& variable) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      parts_.push_back({&variable, sizeof variable});
    } else {
      using Element = std::remove_reference_t<decltype(*variable.data())>;
      static_assert(std::is_trivially_copyable_v<Element>);
      parts_.push_back({variable.data(), variable.size() * sizeof(Element)});
    }
  }

  /// A variable that is another one on each rank, such as a part of an optimizer's state. A commit copies it to the memory
  /// of another rank, on another host if there is one. So a process in the place of one that was lost gets its part, and
  /// so do all ranks if their number has changed: by reshard, without which the job ends then.
  template <class T>
  void add_shard(std::vector<T>& part, Reshard<T> reshard = {}) {
    shards_.add(part, std::move(reshard));
  }

  /// How many times it has been saved, on whatever rank it was then.
  std::uint64_t commits() const { return version_.first; }

 private:
  template <class Function>
  friend bool run(State& state, Function function, double timeout_seconds);
  friend class Generation;

  struct Part {
    void* memory;
    std::size_t bytes;
  };
  template <class Copy>
  void copy(Copy copy_part) {
    std::uint8_t* next = saved_.data();
    for (const Part& part : parts_) {
      copy_part(part, next);
      next += part.bytes;
    }
  }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const Part& part : parts_) sum += part.bytes;
    return sum;
  }
  void save() {
    saved_.resize(bytes());
    copy([](const Part& part, std::uint8_t* saved) { std::memcpy(saved, part.memory, part.bytes); });
  }
  void restore() {
    copy([](const Part& part, const std::uint8_t* saved) { std::memcpy(part.memory, saved, part.bytes); });
  }

  using Version = detail::Shards::Version;
  static bool keeps_shards(Context& context, const detail::Shards& shards) {
    return !shards.empty() && context.elastic_generation() >= 0;
  }

  /// All ranks get the copy of the one that has saved most often. If all have saved as often, nothing is sent.
  void agree(Context& context, const char* folder) {
    std::vector<std::uint64_t> own{version_.first, version_.second, saved_.size()};
    const std::vector<std::uint64_t> all = context.allgather(own);
    // The ranks see the same numbers, so all of them or none make the call.
    int holder = 0;
    bool differ = false;
    const auto version_of = [&](int rank) { return Version{all[3 * rank], all[3 * rank + 1]}; };
    for (int rank = 0; rank < context.size(); ++rank) {
      detail::require(all[3 * rank + 2] == all[2], "the states of two ranks have different sizes");
      differ = differ || version_of(rank) != version_of(0);
      if (version_of(rank) > version_of(holder)) holder = rank;
    }
    if (differ) {
      context.broadcast(saved_, holder);
      restore();
    }
    const Version newest = version_of(holder);
    if (!keeps_shards(context, shards_)) {
      version_ = newest;
      return;
    }
    if (newest > Version{}) {
      const std::string lost = shards_.restore(context, newest);
      if (!lost.empty()) go_back_to_file(context, folder, lost);
    }
    const Version next{newest.first, newest.second + 1};
    shards_.keep(context, next);
    context.barrier();
    set_version(next);
  }

  /// Nobody has all of the last commit: the file may be older. Collective.
  void go_back_to_file(Context& context, const char* folder, const std::string& lost) {
    std::vector<std::uint64_t> commits{0};
    if (context.rank() == 0 && folder != nullptr && read(folder)) commits[0] = version_.first;
    context.broadcast(commits, 0);
    if (commits[0] == 0)
      context.abort(1, lost +
                           ", and there is no file of an earlier commit (ddlrun --state-dir DIR "
                           "--state-interval N)");
    if (context.rank() == 0)
      std::fprintf(stderr, "ddl: %s; going back to commit %llu in %s\n", lost.c_str(),
                   static_cast<unsigned long long>(commits[0]), folder);
    context.broadcast(saved_, 0);
    restore();
    shards_.restore(context, {commits[0], 0});
  }

  /// Of the next commit. Collective.
  void keep_shards(Context& context) {
    if (keeps_shards(context, shards_)) shards_.keep(context, {version_.first + 1, 0});
  }
  /// When all ranks have come so far that the next commit counts.
  void save_and_count() {
    save();
    set_version({version_.first + 1, 0});
  }
  void set_version(Version version) {
    version_ = version;
    shards_.keep_only(version);
  }

  /// The file of the state in a folder: kMagic, the number of commits, the bytes and these; the number of ranks that had
  /// shards, and of each the bytes and these.
  static std::filesystem::path file(const char* folder) {
    return std::filesystem::path(folder) / "ddl-state.bin";
  }
  static void require_of_file(bool condition, const std::filesystem::path& path, const std::string& what) {
    detail::require(condition, (path.string() + " " + what).c_str());
  }
  using Header = std::array<std::uint64_t, 3>;
  static constexpr std::uint64_t kMagic = 0x3253'454C'4444ULL;

  /// Rank 0 replaces the file, or leaves the earlier one. Collective.
  void write(Context& context, const char* folder) {
    std::vector<detail::Bytes> shards;
    if (keeps_shards(context, shards_)) shards = shards_.of_all(context, version_);
    if (context.rank() > 0) return;
    const std::filesystem::path written = file(folder).string() + "." + std::to_string(::getpid());
    std::ofstream stream(written, std::ios::binary | std::ios::trunc);
    const Header header{kMagic, version_.first, saved_.size()};
    stream.write(reinterpret_cast<const char*>(header.data()), sizeof header);
    write_bytes(stream, saved_);
    write_number(stream, shards.size());
    for (const detail::Bytes& one : shards) {
      write_number(stream, one.size());
      write_bytes(stream, one);
    }
    stream.close();
    require_of_file(stream.good(), written, "cannot be written");
    std::error_code failed;
    std::filesystem::rename(written, file(folder), failed);
    require_of_file(!failed, file(folder), "cannot be replaced");
  }
  static void write_number(std::ofstream& stream, std::uint64_t number) {
    stream.write(reinterpret_cast<const char*>(&number), sizeof number);
  }
  static void write_bytes(std::ofstream& stream, const detail::Bytes& bytes) {
    stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  /// Makes the folder, and keeps other jobs from it until the process closes it; nothing keeps them from it where the
  /// file system has no locks. The descriptor; -1: it cannot be opened.
  static int take_lock(const char* folder) {
    std::error_code ignored;
    std::filesystem::create_directories(folder, ignored);
    const int lock = ::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // A rank that has written here before may not know yet that it is not rank 0 any more.
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    std::string holder;
    while (lock >= 0 && ::flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      if (holder.empty()) {
        holder = detail::holder_of(lock);
        std::fprintf(stderr, "ddl: %s is used by %s; waiting 10 s for its end\n", folder, holder.c_str());
      }
      require_of_file(std::chrono::steady_clock::now() < until, folder,
                      "is used by another job, which runs now (--state-dir): " + holder +
                          "; give each job a folder of its own");
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return lock;
  }
  /// False: there is no file. The folder must be one that can be written.
  bool read(const char* folder) {
    const std::filesystem::path trial = file(folder).string() + "." + std::to_string(::getpid());
    std::error_code failed;
    const bool is_writable = std::ofstream(trial).good();
    std::filesystem::remove(trial, failed);
    require_of_file(is_writable, folder, "is not a folder that can be written (--state-dir)");
    std::ifstream stream(file(folder), std::ios::binary);
    if (!stream) return false;
    Header header{};
    stream.read(reinterpret_cast<char*>(header.data()), sizeof header);
    require_of_file(stream && header[0] == kMagic && header[2] == saved_.size(), file(folder),
                    "is not the state of this program; remove it to begin anew");
    detail::Bytes saved(saved_.size());
    read_bytes(stream, folder, saved);
    std::vector<detail::Bytes> shards;
    for (std::uint64_t left = read_number(stream, folder); left > 0; --left) {
      shards.emplace_back(read_number(stream, folder));
      read_bytes(stream, folder, shards.back());
    }
    require_of_file(shards.empty() == shards_.empty(), file(folder),
                    "is not the state of this program; remove it to begin anew");
    saved_ = std::move(saved);
    version_ = {header[1], 0};
    if (!shards.empty()) shards_.take(version_, std::move(shards));
    return true;
  }
  /// Never more than the file has, whatever its numbers say.
  static std::uint64_t read_number(std::ifstream& stream, const char* folder) {
    std::uint64_t number = 0;
    stream.read(reinterpret_cast<char*>(&number), sizeof number);
    std::error_code failed;
    require_of_file(stream.good() && number <= std::filesystem::file_size(file(folder), failed), file(folder),
                    "has lost its end; remove it to begin anew");
    return number;
  }
  static void read_bytes(std::ifstream& stream, const char* folder, detail::Bytes& bytes) {
    stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    require_of_file(stream.good(), file(folder), "has lost its end; remove it to begin anew");
  }
  /// With what ranks have left that were killed while they wrote.
  static void remove(const char* folder) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      if (entry.path().stem() == file(folder).filename() || entry.path() == file(folder))
        std::filesystem::remove(entry.path(), ignored);
    }
  }

  std::vector<Part> parts_;
  detail::Bytes saved_;
  detail::Shards shards_;
  Version version_;
};

/// The time in which the same processes are the ranks of the job. Valid inside the function of run().
class Generation {
 public:
  /// The ranks, of which there may be others in the next generation.
  Context& context() { return context_; }
  int number() const { return context_.elastic_generation(); }

  /// Keeps a copy of the state, from which the job goes on if a rank is lost. If the job is to change or to end, it ends
  /// the function of run(), on all ranks at the same step, by what run() catches. After a change the function is called
  /// again. With --state-interval, rank 0 writes the state now and then. Collective: at the same step on all ranks.
  void commit() {
    state_.keep_shards(context_);
    const int change = context_.elastic_check();
    state_.save_and_count();
    const char* const folder = std::getenv("DDL_ELASTIC_STATE_DIR");
    const char* const text = std::getenv("DDL_ELASTIC_STATE_INTERVAL");
    const std::uint64_t interval = text != nullptr ? std::strtoull(text, nullptr, 10) : 0;
    const bool is_due = change == DDL_ELASTIC_DRAINS || (interval > 0 && state_.commits() % interval == 0);
    if (folder != nullptr && is_due) {
      try {
        state_.write(context_, folder);
      } catch (const Error& error) {
        if (change == DDL_ELASTIC_DRAINS || error.status() != DDL_ERROR_INVALID_ARGUMENT) throw;
        std::fprintf(stderr, "ddl: the state was not saved at commit %llu: %s\n",
                     static_cast<unsigned long long>(state_.commits()), error.what());
      }
    }
    if (change == DDL_ELASTIC_DRAINS) throw Drained();
    if (change != DDL_ELASTIC_STAYS) throw Changed();
  }

 private:
  template <class Function>
  friend bool run(State& state, Function function, double timeout_seconds);
  struct Changed {};
  struct Drained {};

  Generation(State& state, Context& context) : state_(state), context_(context) {}
  State& state_;
  Context& context_;
};

template <class Function>
bool run(State& state, Function function, double timeout_seconds) {
  ddl_elastic_join_options options = DDL_ELASTIC_JOIN_OPTIONS_INIT;
  options.timeout_seconds = timeout_seconds;
  state.save();
  const char* const folder = std::getenv("DDL_ELASTIC_STATE_DIR");
  for (;;) {
    bool is_elastic = true;
    try {
      options.commits = state.commits();
      Context context(options);
      is_elastic = context.elastic_generation() >= 0;
      const bool keeps_file = is_elastic && folder != nullptr && context.rank() == 0;
      try {
        const detail::Descriptor lock(keeps_file ? State::take_lock(folder) : -1);
        if (keeps_file && state.commits() == 0) state.read(folder);
        state.restore();
        state.agree(context, folder);
        Generation generation(state, context);
        function(generation);
        context.elastic_finished();
        if (keeps_file) State::remove(folder);
        return true;
      } catch (const Error& error) {
        // All ranks would come to the same again.
        if (is_elastic &&
            (error.status() == DDL_ERROR_MISMATCH || error.status() == DDL_ERROR_INVALID_ARGUMENT))
          context.abort(1, error.what());
        throw;
      }
    } catch (const Generation::Drained&) {
      return false;
    } catch (const Generation::Changed&) {
      options.reason = DDL_ELASTIC_CHANGED;
    } catch (const Error& error) {
      const bool is_lost = error.status() == DDL_ERROR_PEER_LOST || error.status() == DDL_ERROR_TIMEOUT ||
                           error.status() == DDL_ERROR_ABORTED;
      if (!is_elastic || !is_lost) throw;
      options.reason = DDL_ELASTIC_LOST;
    }
  }
}

}  // namespace ddl::elastic

#endif  // DDL_ELASTIC_HPP
