// The only translation unit that compiles Catch2 itself. A program that finds no test for its arguments fails: v3 does
// so by itself, v2 if it is told to.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
int main(int argc, char** argv) {
  Catch::Session session;
  const int wrong_usage = session.applyCommandLine(argc, argv);
  if (wrong_usage != 0) return wrong_usage;
  session.configData().warnings = Catch::WarnAbout::NoTests;
  return session.run();
}
#endif
