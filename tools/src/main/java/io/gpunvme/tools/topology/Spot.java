package io.gpunvme.tools.topology;

import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.tools.machine.LinkAbove;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.machine.MachineFunction;
import io.gpunvme.tools.machine.NumaNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A place in the tree from the machine down to its GPUs and SSDs.
 *
 * @param kind what it is
 * @param name {@code 0} for a node, {@code 0000:00} for a host bridge, or an address; empty if not
 *     known
 * @param node of a {@link Kind#NODE} that the kernel describes; else null
 * @param function of a port, a switch (its upstream port) or an end; null if the kernel does not
 *     show it
 * @param link the link above it; null where there is none
 * @param slot the switch's downstream port that it is at; null elsewhere
 * @param children what is below it, by address
 */
public record Spot(
    Kind kind,
    String name,
    @Nullable NumaNode node,
    @Nullable MachineFunction function,
    @Nullable LinkAbove link,
    @Nullable PciAddress slot,
    List<Spot> children) {
  /** Copies the list. */
  public Spot {
    children = List.copyOf(children);
  }

  /** What a place is. */
  public enum Kind {
    /** The machine. */
    HOST("host"),
    /** Processors with their memory. */
    NODE("NUMA node"),
    /** Where PCI Express begins. */
    BRIDGE("host bridge"),
    /** A port of the root complex. */
    PORT("root port"),
    /** A PCI Express switch. */
    SWITCH("switch"),
    /** A function that has PCI functions below it and is no bridge (Intel's VMD). */
    CONTROLLER("controller"),
    /** A GPU that CUDA may know. */
    GPU("GPU"),
    /** An NVMe controller. */
    SSD("SSD");

    private final String text;

    Kind(String text) {
      this.text = text;
    }

    /** As it is printed. */
    @Override
    public String toString() {
      return text;
    }
  }

  /** {@code switch 0000:11:00.0}, {@code NUMA node not known}. */
  public String title() {
    return kind == Kind.HOST ? name : kind + " " + (name.isEmpty() ? "not known" : name);
  }

  /** What else is to be said about it in a line; may be empty. */
  String details(Machine machine) {
    return switch (kind) {
      case NODE -> node == null ? "" : details(node);
      case GPU, SSD -> ": " + end(machine);
      case SWITCH -> link == null ? "" : ": " + link;
      case HOST, BRIDGE, PORT, CONTROLLER -> "";
    };
  }

  private static String details(NumaNode node) {
    StringBuilder text = new StringBuilder();
    if (node.socket() >= 0) {
      text.append(", socket ").append(node.socket());
    }
    if (!node.cpus().isEmpty()) {
      text.append(", CPUs ").append(node.cpus());
    }
    if (node.memoryBytes() > 0) {
      text.append(
          String.format(Locale.ROOT, ", %.0f GiB", node.memoryBytes() / (double) (1 << 30)));
    }
    return text.isEmpty() ? "" : ":" + text.substring(1);
  }

  private String end(Machine machine) {
    MachineFunction own = function;
    if (own == null || link == null) {
      return "";
    }
    List<String> disks = machine.diskNames(own.address());
    return String.join(
        "; ",
        Stream.of(
                link.toString(),
                own.model(),
                own.uuid(),
                disks.isEmpty() ? "" : String.join(" ", disks),
                own.driver().isEmpty() ? "no driver" : "driver " + own.driver())
            .filter(part -> !part.isEmpty())
            .toList());
  }

  /** All ends of a kind here and below. */
  public List<MachineFunction> ends(Kind wanted) {
    if (kind == wanted && function != null) {
      return List.of(function);
    }
    return children.stream().flatMap(child -> child.ends(wanted).stream()).toList();
  }

  /** It and everything below it. */
  Stream<Spot> all() {
    return Stream.concat(Stream.of(this), children.stream().flatMap(Spot::all));
  }

  /** It and everything below it, drawn as a tree, one line each. */
  public List<String> lines(Machine machine) {
    List<String> lines = new ArrayList<>();
    draw(machine, "", "", lines);
    return lines;
  }

  private void draw(Machine machine, String own, String below, List<String> lines) {
    lines.add(own + title() + details(machine));
    for (int i = 0; i < children.size(); i++) {
      boolean last = i == children.size() - 1;
      children
          .get(i)
          .draw(machine, below + (last ? "└─ " : "├─ "), below + (last ? "   " : "│  "), lines);
    }
  }
}
