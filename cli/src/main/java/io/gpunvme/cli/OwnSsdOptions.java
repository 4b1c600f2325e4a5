package io.gpunvme.cli;

import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** How data comes from SSDs that are ours; files of the kernel's come another way. */
final class OwnSsdOptions {
  @Mixin private final InitiatorOption initiator = new InitiatorOption();

  @Option(
      names = "--placement",
      paramLabel = "WHERE",
      converter = Converters.Where.class,
      description =
          "With --device: place of queues and data: host, vram-data (data in GPU memory), or vram "
              + "(both). Default: vram-data if the SSD reaches GPU memory, else host.")
  private @Nullable Placement placement;

  @Option(
      names = "--queues",
      paramLabel = "N",
      converter = Converters.Count.class,
      description = "With --device: I/O queue pairs of each SSD (4).")
  private int queues;

  @Option(
      names = "--depth",
      paramLabel = "N",
      converter = Converters.Count.class,
      description = "With --device: commands in flight per queue pair (16; 256 for a GPU).")
  private int depth;

  @Option(
      names = "--nsid",
      paramLabel = "N",
      converter = Converters.Nsid.class,
      description = "With --device: the namespace of each SSD (1).")
  private @Nullable Integer nsid;

  @Mixin private final CommandLimits limits = new CommandLimits();

  /**
   * How these are to be opened.
   *
   * @throws UsageException if an option is without effect, because no SSD of ours is among them
   */
  StorageOptions storage(List<StorageAddress> addresses) {
    boolean given =
        initiator.kind() != InitiatorKind.AUTO
            || placement != null
            || queues != 0
            || depth != 0
            || nsid != null
            || limits.given();
    if (given && addresses.stream().allMatch(a -> a.devices().isEmpty())) {
      throw new UsageException(
          "--initiator, --placement, --queues, --depth, --nsid, --timeout and --max-transfer need"
              + " --device: %s is a file of a mounted file system".formatted(addresses.getFirst()));
    }
    InitiatorOptions how =
        InitiatorOptions.defaults().with(queues, depth, 0).with(initiator.kind(), placement);
    return StorageOptions.defaults()
        .with(limits.controller(false))
        .with(how)
        .withNamespace(nsid == null ? 1 : nsid);
  }
}
