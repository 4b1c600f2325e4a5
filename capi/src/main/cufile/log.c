// The log, in cuFile's form. Only where the program or its environment asked for one: never in the working directory.
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "parts.h"

#define CUFILE_PART "log"

static const char *const names[] = {"TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "ERROR"};

static atomic_int file = -1;
static atomic_int lowest = LOG_ERROR;

int log_level_of(const char *name) {
  for (size_t i = 0; i < COUNT(names); i++) {
    if (strcasecmp(names[i], name) == 0) {
      return (int)i;
    }
  }
  return -1;
}

// A pipe that nobody reads must not stop the program here.
static int open_file(const char *path) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
  if (fd >= 0) {
    fcntl(fd, F_SETFL, O_APPEND);
  }
  return fd;
}

void log_open(const char *path, const char *folder, const char *level) {
  char beside[4096 + sizeof "/cufile.log"];
  int known = log_level_of(level);
  atomic_store(&lowest, known < 0 ? LOG_ERROR : known);
  if (*path == 0 && *folder != 0) {
    snprintf(beside, sizeof beside, "%s/cufile.log", folder);
    path = beside;
  }
  int fd = *path == 0 ? -1 : open_file(path);
  const int before = atomic_load(&file);
  if (before < 0) {
    atomic_store(&file, fd);
    return;
  }
  // The number stays: another thread may be about to write to it, and must not meet a file of the program's.
  fd = fd >= 0 ? fd : open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    dup3(fd, before, O_CLOEXEC);
    close(fd);
  }
}

void log_line(enum log_level level, const char *part, int line, const char *format, ...) {
  int fd = atomic_load(&file);
  if (fd < 0 || (int)level < atomic_load(&lowest)) {
    return;
  }
  char text[4096];
  struct timespec now;
  struct tm t;
  clock_gettime(CLOCK_REALTIME, &now);
  localtime_r(&now.tv_sec, &t);
  int used = snprintf(text, sizeof text, " %02d-%02d-%04d %02d:%02d:%02d:%03ld [pid=%d tid=%ld] %-6s %s:%d ", t.tm_mday, t.tm_mon + 1,
      t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec, now.tv_nsec / 1000000, getpid(), syscall(SYS_gettid), names[level], part, line);
  va_list arguments;
  va_start(arguments, format);
  int more = vsnprintf(text + used, sizeof text - (size_t)used - 1, format, arguments);
  va_end(arguments);
  size_t length = strlen(text);
  (void)more; // what does not fit is cut
  text[length] = '\n';
  // A line that cannot be written is lost: there is nobody to tell.
  if (write(fd, text, length + 1) < 0) {
    return;
  }
}
