#include <stdarg.h>
#include <stdio.h>

#include "shim.h"

static _Thread_local failure mine;

failure *shim_failure(void) {
  return &mine;
}

int shim_fail(failure *f, int code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  f->error = 0;
  vsnprintf(f->text, sizeof f->text, format, arguments);
  va_end(arguments);
  return code;
}

const char *gpunvme_version(void) {
  return SHIM_VERSION;
}

const char *gpunvme_last_error(void) {
  return mine.text;
}

int gpunvme_last_errno(void) {
  return mine.error;
}
