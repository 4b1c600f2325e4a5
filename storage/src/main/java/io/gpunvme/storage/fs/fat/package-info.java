/**
 * FAT32, read-only, with long names. In: the boot sector, the file allocation table, folders and
 * what their entries say. Out: FAT12, FAT16 and exFAT, which are recognised and refused.
 *
 * <p>Source: Microsoft, <em>FAT32 File System Specification</em>, version 1.03 (December 2000), and
 * {@code Documentation/filesystems/vfat.rst} of the Linux kernel. Times have no time zone there;
 * they are taken as UTC. Names without a long one are read in code page 437.
 */
@NullMarked
package io.gpunvme.storage.fs.fat;

import org.jspecify.annotations.NullMarked;
