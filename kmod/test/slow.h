/* SPDX-License-Identifier: GPL-2.0 */
/* Memory that keeps whoever touches it waiting, for as long as a test likes: of userfaultfd, and of files of FUSE. */
#ifndef SLOW_H
#define SLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A page that is there to be read; who writes it waits. The kernel's name of that is its userfaultfd. */
struct guarded_page {
	void *at;
	int userfaultfd;
};

struct guarded_page guard_page(void);
/* Copies bytes to its beginning before anybody has to wait, returns when somebody waits, and lets them go on. */
void fill_guarded_page(struct guarded_page *page, const void *bytes, uint64_t count);
void await_writer(struct guarded_page *page);
void open_guarded_page(struct guarded_page *page);

/*
 * A file of bytes that a process of ours serves. It calls the function before it answers a read or a write of pages. 0 where
 * the kernel has no FUSE, else the process.
 */
pid_t serve_file(const char *path, uint64_t bytes, void (*before)(bool write));
/* Whoever waits for the process goes on. */
void end_file(const char *path, pid_t server);

#endif
