package io.gpunvme.tools.topology;

import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.testing.FakeMachine;
import io.gpunvme.tools.machine.FakeMachines;
import io.gpunvme.tools.machine.Machine;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * A made-up machine that a person described and drew, from a file of three parts.
 *
 * <p>{@code machine}: one thing a line, two spaces deeper than what it is below.
 *
 * <pre>
 * node 0 cpus 0-15 gib 64 socket 0
 * bridge 0000:00
 *   port 0000:00:01.0 32GT/s x16          a link: the best of this function
 *     up 0000:01:00.0 16GT/s x16          a switch: its upstream port,
 *       down 0000:02:00.0 16GT/s x16      and its downstream ports
 *         gpu 0000:03:00.0 2.5GT/s x16 of 16GT/s x16 node 0 | NVIDIA A100
 *         ssd 0000:04:00.0 16GT/s x4 node 0 driver vfio-pci | Some SSD
 * nvlink 0000:03:00.0 0000:05:00.0 4 100  links and GB/s of all; "switches" for a peer
 * file sys/bus/pci/devices/x/class text   any file
 * link sys/bus/pci/devices/x sys/bus      any symbolic link
 * mount 259:0 /dev/nvme0n1 /              a file system
 * </pre>
 *
 * <p>{@code tree}: as it must be drawn. {@code facts}: lines that must be among those that {@link
 * TopologyTest} makes of it.
 */
record DrawnMachine(Machine machine, NvLinks nvLinks, List<String> tree, List<String> facts) {
  private static final int INDENT = 2;

  static DrawnMachine read(String name, Path root) {
    Map<String, List<String>> parts = new LinkedHashMap<>();
    List<String> part = new ArrayList<>();
    for (String line : text(name).lines().toList()) {
      if (line.startsWith("--- ")) {
        part = parts.computeIfAbsent(line.substring(4), _ -> new ArrayList<>());
      } else if (!line.isBlank() && !line.startsWith("#")) {
        part.add(line.stripTrailing());
      }
    }
    Builder builder = new Builder(new FakeMachine(root));
    parts.getOrDefault("machine", List.of()).forEach(builder::line);
    return new DrawnMachine(
        FakeMachines.read(builder.fake),
        new NvLinks(builder.nvlinkProblem, builder.bundles),
        parts.getOrDefault("tree", List.of()),
        parts.getOrDefault("facts", List.of()));
  }

  private static String text(String name) {
    try (InputStream in = DrawnMachine.class.getResourceAsStream(name + ".txt")) {
      return new String(Objects.requireNonNull(in, name).readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private static final class Builder {
    private final FakeMachine fake;
    private final List<NvLinks.Bundle> bundles = new ArrayList<>();
    private final Deque<String> above = new ArrayDeque<>();
    private String nvlinkProblem = "not asked";
    private int disks;

    Builder(FakeMachine fake) {
      this.fake = fake;
    }

    void line(String line) {
      String[] halves = line.split("\\|", 2);
      int depth = (line.length() - line.stripLeading().length()) / INDENT;
      String[] words = halves[0].strip().split(" +", -1);
      switch (words[0]) {
        case "node" ->
            fake.node(
                Integer.parseInt(words[1]),
                words[3],
                Long.parseLong(words[5]) << 20,
                Integer.parseInt(words[7]));
        case "bridge" -> {
          fake.hostBridge(words[1]);
          above.clear();
        }
        case "nvlink" -> {
          nvlinkProblem = "";
          bundles.add(
              new NvLinks.Bundle(
                  PciAddress.parse(words[1]),
                  words[2].equals("switches") ? null : PciAddress.parse(words[2]),
                  Integer.parseInt(words[3]),
                  Double.parseDouble(words[4])));
        }
        case "file" -> fake.write(words[1], words.length > 2 ? words[2] : "");
        case "link" -> fake.link(words[1], words[2]);
        case "mount" -> fake.mount(words[1], words[2], words[3], "ext4");
        default -> function(depth, words, halves.length > 1 ? halves[1].strip() : "");
      }
    }

    private void function(int depth, String[] words, String model) {
      while (above.size() >= depth) {
        above.removeLast();
      }
      String parents = String.join("/", above);
      String address = words[1];
      switch (words[0]) {
        case "gpu" -> gpu(parents, address, model);
        case "ssd" -> ssd(parents, address, List.of(words).contains("driver") ? "" : model);
        case "port", "up", "down" -> fake.function(parents, address, FakeMachine.BRIDGE, 0x8086);
        case "missing" -> {} // In the path of those below it only.
        case "controller" -> fake.function(parents, address, 0x010400, 0x8086);
        default -> throw new AssertionError("what is a " + words[0] + "?");
      }
      above.addLast(address);
      options(address, words);
    }

    private void gpu(String parents, String address, String model) {
      fake.gpu(parents, address).driver(address, "nvidia");
      fake.write(
          "proc/driver/nvidia/gpus/" + address + "/information",
          "Model: \t\t " + model + "\nGPU UUID: \t GPU-" + address + "\n");
    }

    /** What the kernel's driver says about an SSD is there only if that has it. */
    private void ssd(String parents, String address, String model) {
      if (model.isEmpty()) {
        fake.function(parents, address, FakeMachine.NVME, 0x144D);
        return;
      }
      fake.ssd(parents, address, disks);
      fake.write(FakeMachine.at(address) + "/nvme/nvme" + disks + "/model", model + "\n");
      disks++;
    }

    private void options(String address, String[] words) {
      int at = 2;
      if (at < words.length && words[at].endsWith("GT/s")) {
        boolean both = words.length > 4 && words[4].equals("of");
        String[] best =
            both ? new String[] {words[5], words[6]} : new String[] {words[2], words[3]};
        fake.speed(address, speed(words[2]), width(words[3]), speed(best[0]), width(best[1]));
        at = both ? 7 : 4;
      }
      for (; at + 1 < words.length; at += 2) {
        String value = words[at + 1];
        switch (words[at]) {
          case "node" -> fake.write(FakeMachine.at(address) + "/numa_node", value + "\n");
          case "driver" -> driver(address, value);
          case "acs" -> fake.accessControl(address, Integer.decode(value));
          default -> throw new AssertionError("what is " + words[at] + "?");
        }
      }
    }

    private void driver(String address, String name) {
      if (name.equals("none")) {
        fake.unbind(address);
      } else {
        fake.driver(address, name);
      }
    }

    private static String speed(String word) {
      String number = word.substring(0, word.length() - "GT/s".length());
      return number.contains(".") ? number : number + ".0";
    }

    private static int width(String word) {
      return Integer.parseInt(word.substring(1));
    }
  }
}
