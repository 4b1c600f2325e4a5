package io.gpunvme.storage.fs;

import io.gpunvme.storage.fs.partition.Partition;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A file system that was found on a device.
 *
 * @param fileSystem its extents count from the start of the device, also in a partition
 * @param partition the partition that it is in; null: it fills the device
 * @param notes irregularities and how they were handled; mostly empty
 */
public record OpenedFileSystem(
    FileSystem fileSystem, @Nullable Partition partition, List<String> notes) {}
