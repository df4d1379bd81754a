// Averages each rank's number; prints "rank R of N by BOOTSTRAP: AVERAGE".
#include <iostream>

#include <ddl/ddl.hpp>

int main() try {
  ddl::Context context;
  double value = context.rank();
  context.allreduce(&value, 1, ddl::Op::average);
  std::cout << "rank " << context.rank() << " of " << context.size() << " by " << context.bootstrap_name()
            << ": " << value << std::endl;
} catch (const ddl::Error& error) {
  std::cerr << error.what() << std::endl;
  return 1;
}
