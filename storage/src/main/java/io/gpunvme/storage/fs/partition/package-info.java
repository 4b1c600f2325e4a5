/**
 * Partition tables, read-only: GPT and MBR with its chain of logical partitions. In: the partitions
 * of a device. Out: their contents.
 *
 * <p>Source: UEFI specification 2.10, chapter 5 ("GUID Partition Table (GPT) Disk Layout", with the
 * MBR in 5.2); logical partitions are described nowhere officially, and read as Linux does ({@code
 * block/partitions/msdos.c}).
 */
@NullMarked
package io.gpunvme.storage.fs.partition;

import org.jspecify.annotations.NullMarked;
