package io.gpunvme.tools.doctor;

import io.gpunvme.tools.machine.DeviceNode;
import io.gpunvme.tools.machine.DiskUse;
import io.gpunvme.tools.machine.DriverBinding;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.machine.MachineFunction;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A command that does something on this machine as it is.
 *
 * @param command the whole line
 * @param what one sentence
 */
public record NextStep(String command, String what) {
  /**
   * What can be done now, the first thing first. Nothing of it changes data.
   *
   * @param program what a shell calls it by
   * @param root the same after {@code sudo}
   * @param file of a mounted file system, as a shell takes it
   */
  public static List<NextStep> of(
      Machine machine, CudaView cuda, String program, String root, String file) {
    List<NextStep> steps = new ArrayList<>();
    boolean gpu = !cuda.gpus().isEmpty();
    steps.add(
        new NextStep(
            program + " demo",
            gpu
                ? "a file through an embedded SSD into GPU memory, by commands of the GPU"
                : "a file through an embedded SSD into memory, by commands of the CPU"));
    machine.ssds().stream()
        .flatMap(ssd -> of(machine, ssd, program, root).stream())
        .forEach(steps::add);
    if (gpu) {
      steps.add(new NextStep(program + " bench queue", "how many commands a second the GPU makes"));
    }
    steps.add(
        new NextStep(
            program + " explain " + file, "which path a file takes, such as this one of Java's"));
    return steps;
  }

  /** Empty if somebody uses it, or it cannot be had. */
  private static Optional<NextStep> of(
      Machine machine, MachineFunction ssd, String program, String root) {
    String address = ssd.address().toString();
    if (!DiskUse.of(machine, ssd.address()).isEmpty()) {
      return Optional.empty();
    }
    String asRoot = machine.kernel().root() ? program : "sudo " + root;
    if (ssd.userSpace()) {
      boolean denied = !machine.openedNodes(ssd.address()).stream().allMatch(DeviceNode::open);
      String kind = ssd.kmod() ? "kmod:" : "vfio:";
      return Optional.of(
          new NextStep(
              (denied ? asRoot : program) + " try " + kind + address,
              "what this SSD does here; it is only read"));
    }
    if (ssd.group() != null && !DriverBinding.othersInGroup(machine, ssd).isEmpty()) {
      return Optional.empty();
    }
    boolean bare = ssd.group() == null;
    return Optional.of(
        new NextStep(
            asRoot + " try " + address + (bare ? " --no-driver" : ""),
            "what this SSD does here; it is only read, and given back"
                + (bare ? "; nothing but root's care isolates it (docs/safety.md)" : "")));
  }
}
