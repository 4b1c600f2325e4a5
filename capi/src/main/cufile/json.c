// The little of JSON that cufile.json needs, with comments.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "parts.h"

enum { MOST_DEPTH = 16 };

typedef struct parser {
  const char *at, *begin;
  json_visitor *visitor;
  void *data;
  char name[256], value[4096];
  int depth;
  const char *wrong;
} parser;

static bool fail(parser *p, const char *what) {
  static _Thread_local char text[128];
  int line = 1;
  for (const char *c = p->begin; c < p->at; c++) {
    line += *c == '\n';
  }
  snprintf(text, sizeof text, "line %d: %s", line, what);
  p->wrong = text;
  return false;
}

static void skip(parser *p) {
  for (;;) {
    const char *end;
    while (isspace((unsigned char)*p->at)) {
      p->at++;
    }
    if (p->at[0] == '/' && p->at[1] == '/') {
      p->at += strcspn(p->at, "\n");
    } else if (p->at[0] == '/' && p->at[1] == '*' && (end = strstr(p->at + 2, "*/")) != NULL) {
      p->at = end + 2;
    } else {
      return;
    }
  }
}

// Four hexadecimal digits; -1 if they are not there.
static int hex4(const char *text) {
  int code = 0;
  for (int i = 0; i < 4; i++) {
    const char c = text[i];
    if (!isxdigit((unsigned char)c)) {
      return -1;
    }
    code = code * 16 + (isdigit((unsigned char)c) ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return code;
}

// What is behind \u, in UTF-8; p->at is at the last digit then. 0 if it is no character, or the end of a text.
static size_t unicode(parser *p, char utf8[4]) {
  int code = hex4(p->at + 1);
  if (code <= 0 || (code >= 0xdc00 && code < 0xe000)) {
    return 0;
  }
  p->at += 4;
  if (code >= 0xd800 && code < 0xdc00) {
    const int low = p->at[1] == '\\' && p->at[2] == 'u' ? hex4(p->at + 3) : -1;
    if (low < 0xdc00 || low >= 0xe000) {
      return 0;
    }
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    p->at += 6;
  }
  const size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = length - 1; i > 0; i--, code >>= 6) {
    utf8[i] = (char)(0x80 | (code & 0x3f));
  }
  static const int lead[] = {0, 0xc0, 0xe0, 0xf0};
  utf8[0] = (char)(lead[length - 1] | code);
  return length;
}

// What is behind a backslash, at p->at; the number of bytes, or 0 if it means nothing.
static size_t escaped(parser *p, char bytes[4]) {
  static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
  if (*p->at == 'u') {
    return unicode(p, bytes);
  }
  const char *found = *p->at == 0 ? NULL : strchr(names, *p->at);
  if (found == NULL) {
    return 0;
  }
  bytes[0] = means[found - names];
  return 1;
}

// A string into p->value.
static bool string(parser *p) {
  size_t used = 0;
  if (*p->at != '"') {
    return fail(p, "a string is expected");
  }
  for (p->at++; *p->at != '"'; p->at++) {
    char bytes[4] = {*p->at};
    size_t length = 1;
    if (*p->at == '\\') {
      p->at++;
      if ((length = escaped(p, bytes)) == 0) {
        return fail(p, "no character is written so, behind a backslash");
      }
    }
    if (*p->at == 0 || used + length >= sizeof p->value) {
      return fail(p, "a string does not end, or is too long");
    }
    memcpy(p->value + used, bytes, length);
    used += length;
  }
  p->at++;
  p->value[used] = 0;
  return true;
}

static bool value(parser *p, int number);

// What is between the brackets of an object or an array.
static bool items(parser *p, char close) {
  size_t length = strlen(p->name);
  if (++p->depth > MOST_DEPTH) {
    return fail(p, "too deep");
  }
  p->at++;
  skip(p);
  for (int number = 0; *p->at != close; number++) {
    if (close == '}') {
      if (!string(p)) {
        return false;
      }
      const int more = snprintf(p->name + length, sizeof p->name - length, "%s%s", length > 0 ? "." : "", p->value);
      if (more >= (int)(sizeof p->name - length)) {
        return fail(p, "names are too long");
      }
      skip(p);
      if (*p->at != ':') {
        return fail(p, "a colon is expected");
      }
      p->at++;
    }
    if (!value(p, close == '}' ? -1 : number)) {
      return false;
    }
    p->name[length] = 0;
    skip(p);
    if (*p->at == ',') {
      p->at++;
      skip(p);
    } else if (*p->at != close) {
      return fail(p, close == '}' ? "a comma or } is expected" : "a comma or ] is expected");
    }
  }
  p->at++;
  p->depth--;
  return true;
}

static bool value(parser *p, int number) {
  skip(p);
  if (*p->at == '{') {
    return items(p, '}');
  }
  if (*p->at == '[') {
    return items(p, ']');
  }
  if (*p->at == '"') {
    if (!string(p)) {
      return false;
    }
  } else {
    size_t length = strcspn(p->at, " \t\r\n,]}/");
    if (length == 0 || length >= sizeof p->value) {
      return fail(p, "a value is expected");
    }
    memcpy(p->value, p->at, length);
    p->value[length] = 0;
    p->at += length;
  }
  p->visitor(p->data, p->name, number, p->value);
  return true;
}

const char *json_visit(const char *text, json_visitor *visitor, void *data) {
  parser p = {.at = text, .begin = text, .visitor = visitor, .data = data};
  skip(&p);
  if (*p.at != '{') {
    fail(&p, "{ is expected");
    return p.wrong;
  }
  if (value(&p, -1)) {
    skip(&p);
    if (*p.at != 0) {
      fail(&p, "nothing more is expected");
    }
  }
  return p.wrong;
}
