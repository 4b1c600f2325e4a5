package io.gpunvme.tools.topology;

import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.tools.machine.Machine;
import io.gpunvme.tools.machine.MachineFunction;
import io.gpunvme.tools.machine.NumaNode;
import io.gpunvme.tools.topology.Spot.Kind;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Makes the tree of a machine from the way of each GPU and SSD to the root complex. */
final class TreeBuilder {
  /** A place while the tree grows. */
  private static final class Growing {
    private final Kind kind;
    private final String name;
    private final @Nullable PciAddress slot;
    private final Map<String, Growing> children = new TreeMap<>();

    Growing(Kind kind, String name, @Nullable PciAddress slot) {
      this.kind = kind;
      this.name = name;
      this.slot = slot;
    }

    /** The child, which comes into being; those without a name are the last. */
    Growing child(Kind childKind, String key, String childName, @Nullable PciAddress at) {
      return children.computeIfAbsent(
          childName.isEmpty() ? "~" : key, _ -> new Growing(childKind, childName, at));
    }

    Growing child(Kind childKind, PciAddress address, @Nullable PciAddress at) {
      return child(childKind, address.toString(), address.toString(), at);
    }
  }

  private final Machine machine;
  private final Growing host;

  private TreeBuilder(Machine machine) {
    this.machine = machine;
    host =
        new Growing(
            Kind.HOST,
            "host: "
                + count(machine.gpus().size(), "GPU")
                + ", "
                + count(machine.ssds().size(), "SSD"),
            null);
  }

  static Spot build(Machine machine) {
    TreeBuilder builder = new TreeBuilder(machine);
    machine.nodes().forEach(node -> builder.node(node.number()));
    machine.gpus().forEach(gpu -> builder.add(gpu, Kind.GPU));
    machine.ssds().forEach(ssd -> builder.add(ssd, Kind.SSD));
    return builder.finished(builder.host);
  }

  static String count(int number, String what) {
    return (number == 0 ? "no" : Integer.toString(number)) + " " + what + (number > 1 ? "s" : "");
  }

  private Growing node(int number) {
    String name = number < 0 ? "" : Integer.toString(number);
    return host.child(Kind.NODE, "%05d".formatted(number), name, null);
  }

  private void add(MachineFunction end, Kind kind) {
    List<NumaNode> nodes = machine.nodes();
    // A machine of one node need not say on which one a function is.
    int number =
        end.numaNode() < 0 && nodes.size() == 1 ? nodes.getFirst().number() : end.numaNode();
    Growing at = node(number).child(Kind.BRIDGE, end.hostBridge(), end.hostBridge(), null);
    PciAddress slot = null;
    // Below a root port, upstream and downstream ports of switches take turns.
    Kind next = Kind.PORT;
    for (PciAddress parent : end.parents()) {
      if (!machine.find(parent).map(MachineFunction::bridge).orElse(true)) {
        at = at.child(Kind.CONTROLLER, parent, slot);
        slot = null;
        next = Kind.PORT;
      } else if (next == Kind.PORT || slot != null || at.kind == Kind.PORT) {
        at = at.child(next, parent, slot);
        slot = null;
        next = Kind.SWITCH;
      } else {
        slot = parent;
      }
    }
    at.child(kind, end.address(), slot);
  }

  private Spot finished(Growing growing) {
    List<Spot> children = new ArrayList<>();
    growing.children.values().forEach(child -> children.add(finished(child)));
    MachineFunction function =
        growing.kind == Kind.NODE || growing.kind == Kind.HOST || growing.kind == Kind.BRIDGE
            ? null
            : machine.find(PciAddress.parse(growing.name)).orElse(null);
    boolean linked =
        growing.kind == Kind.SWITCH || growing.kind == Kind.GPU || growing.kind == Kind.SSD;
    return new Spot(
        growing.kind,
        growing.name,
        machine.nodes().stream()
            .filter(
                n -> growing.kind == Kind.NODE && growing.name.equals(Integer.toString(n.number())))
            .findFirst()
            .orElse(null),
        function,
        linked && function != null ? machine.linkAbove(function) : null,
        growing.slot,
        children);
  }
}
