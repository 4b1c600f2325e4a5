// The few lines that the tests in C need: RUN prints PASS or FAIL, EXPECT says where.
#ifndef GPUNVME_CHECK_H
#define GPUNVME_CHECK_H

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int check_failures; // of the test that runs
static int check_failed_tests __attribute__((unused));

#define EXPECT(condition)                                                    \
  do {                                                                       \
    if (!(condition)) {                                                      \
      printf("  %s:%d: not so: %s\n", __FILE__, __LINE__, #condition);       \
      check_failures++;                                                      \
    }                                                                        \
  } while (0)

#define EXPECT_CODE(should, call)                                                                                        \
  do {                                                                                                                   \
    int is_ = (call), should_ = (should);                                                                                \
    if (is_ != should_) {                                                                                                \
      printf("  %s:%d: %d, not %d, from %s (%s)\n", __FILE__, __LINE__, is_, should_, #call, gpunvme_last_error());      \
      check_failures++;                                                                                                  \
    }                                                                                                                    \
  } while (0)

#define EXPECT_ERROR(part)                                                                                \
  do {                                                                                                    \
    if (strstr(gpunvme_last_error(), part) == NULL) {                                                     \
      printf("  %s:%d: no '%s' in: %s\n", __FILE__, __LINE__, part, gpunvme_last_error());                \
      check_failures++;                                                                                   \
    }                                                                                                     \
  } while (0)

#define RUN(test)                                                                                 \
  do {                                                                                            \
    check_failures = 0;                                                                           \
    test();                                                                                       \
    if (check_failures == 0) {                                                                    \
      printf("PASS %s\n", #test);                                                                 \
    } else {                                                                                      \
      printf("FAIL %s: %d times something else than expected\n", #test, check_failures);          \
      check_failed_tests++;                                                                       \
    }                                                                                             \
    fflush(stdout);                                                                               \
  } while (0)

// Runs a test in a child, for what happens once in a process; counts its failures here.
static inline void in_child(void (*test)(void)) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(60); // against hangs
    check_failures = 0;
    test();
    fflush(stdout);
    _exit(check_failures == 0 ? 0 : 1);
  }
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#endif
