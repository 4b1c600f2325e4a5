/**
 * File systems read without the kernel, which does not see an SSD that this process drives: a file
 * becomes extents, and the accelerator reads those. Read-only. What is read is trusted in nothing:
 * every number is checked before it is used, and what does not fit is a {@link
 * io.gpunvme.storage.fs.FileSystemException}. Each file system has a package of its own below this
 * one; partition tables too. {@link io.gpunvme.storage.fs.FiemapExtents} asks the kernel instead,
 * where it has a file system mounted.
 */
@org.jspecify.annotations.NullMarked
package io.gpunvme.storage.fs;
