/**
 * A file or block device as the paths over the kernel see it: its descriptors with and without the
 * page cache, what it lies on, and how much of it the page cache holds. In here: what several of
 * these paths need to know of a file. Not in here: how bytes get to an accelerator.
 */
@NullMarked
package io.gpunvme.storage.path.file;

import org.jspecify.annotations.NullMarked;
