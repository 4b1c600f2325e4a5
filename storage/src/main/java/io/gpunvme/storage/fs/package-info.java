/**
 * File systems read without the kernel, which does not see an SSD that this process drives: a file
 * becomes extents, and the accelerator reads those. Read-only. Data from the device is not trusted:
 * every number is checked before it is used, and a wrong one is a {@link
 * io.gpunvme.storage.fs.FileSystemException}. Each file system has a package of its own below this
 * one; partition tables too. {@link io.gpunvme.storage.fs.FiemapExtents} asks the kernel instead,
 * for a file in a mounted file system.
 */
@org.jspecify.annotations.NullMarked
package io.gpunvme.storage.fs;
