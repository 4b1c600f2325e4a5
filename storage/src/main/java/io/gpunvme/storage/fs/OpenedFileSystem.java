package io.gpunvme.storage.fs;

import io.gpunvme.storage.fs.partition.Partition;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A file system that was found on a device.
 *
 * @param fileSystem whose extents count from the start of the device, also in a partition
 * @param partition that it is in; null: it fills the device
 * @param notes what is not as it should be, and what was done about it; mostly empty
 */
public record OpenedFileSystem(
    FileSystem fileSystem, @Nullable Partition partition, List<String> notes) {}
