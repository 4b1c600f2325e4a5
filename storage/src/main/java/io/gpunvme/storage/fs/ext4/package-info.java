/**
 * ext4, ext3 and ext2, read-only, as <a
 * href="https://docs.kernel.org/filesystems/ext4/index.html">ext4 Data Structures and
 * Algorithms</a> describes them. {@link io.gpunvme.storage.fs.ext4.Ext4} is the way in.
 *
 * <p>Nothing on the device is trusted: each structure has a class that checks what it reads before
 * anybody uses it (numbers, bounds, order, checksums), so that damage ends in a {@link
 * io.gpunvme.storage.fs.FileSystemException} that names the inode or block. Offsets and lengths are
 * bytes unless a name says blocks.
 */
@org.jspecify.annotations.NullMarked
package io.gpunvme.storage.fs.ext4;
