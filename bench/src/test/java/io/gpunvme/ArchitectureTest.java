package io.gpunvme;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The arrows between packages, and what a library must not do. It is here because this is the only
 * module that sees all the others.
 */
final class ArchitectureTest {
  private static final String ROOT = "io.gpunvme";

  /**
   * Each package with all of ours that it may use; {@code base} is for everybody. Modules forbid
   * the arrows that point upwards; these rules keep the arrows inside a module, and the number of
   * those between modules, small.
   */
  private static final String RULES =
      """
        base                 | ffi
        ffi                  | -

        nvme                 | nvme.spec
        nvme.driver          | ffi nvme nvme.memory nvme.pci nvme.spec
        nvme.memory          | ffi nvme nvme.spec
        nvme.pci             | ffi nvme nvme.memory
        nvme.pci.host        | ffi nvme nvme.memory nvme.pci
        nvme.pci.kmod        | ffi nvme nvme.memory nvme.pci nvme.pci.host
        nvme.pci.sysfs       | ffi nvme nvme.memory nvme.pci nvme.pci.host
        nvme.pci.vfio        | ffi nvme nvme.memory nvme.pci nvme.pci.host
        nvme.pci.vfiouser    | ffi nvme nvme.memory nvme.pci nvme.pci.host nvme.vfiouser
        nvme.spec            | -
        nvme.vfiouser        | ffi nvme

        cuda                 | cuda.library ffi
        cuda.cufile          | cuda cuda.library ffi
        cuda.library         | cuda
        cuda.nvml            | cuda.library

        sim                  | ffi nvme nvme.memory nvme.pci nvme.spec sim.media
        sim.media            | ffi
        sim.serve            | ffi nvme nvme.memory nvme.pci nvme.spec nvme.vfiouser sim

        gpu.accel            | cuda ffi gpu.bar nvme nvme.memory nvme.pci
        gpu.bar              | ffi nvme nvme.memory nvme.pci nvme.pci.host
        gpu.device           | gpu.bar gpu.watch nvme.driver nvme.pci nvme.pci.kmod \
                               nvme.pci.sysfs nvme.pci.vfio nvme.pci.vfiouser sim
        gpu.queue            | cuda gpu.accel gpu.device nvme nvme.driver nvme.memory nvme.pci \
                               nvme.spec
        gpu.transfer         | gpu.accel gpu.queue nvme nvme.driver nvme.memory nvme.pci nvme.spec

        gpu.watch            | ffi nvme.driver nvme.spec sim

        storage              | cuda gpu.accel gpu.device gpu.queue gpu.transfer nvme.driver \
                               nvme.pci storage.fs storage.fs.partition storage.kind storage.path \
                               storage.path.cufile storage.path.direct storage.path.extents \
                               storage.path.file storage.path.mmap storage.path.pinned \
                               storage.path.set storage.plan
        storage.fs           | ffi storage.fs.ext4 storage.fs.fat storage.fs.partition \
                               storage.path
        storage.fs.ext4      | storage.fs
        storage.fs.fat       | storage.fs
        storage.fs.partition | storage.fs
        storage.kind         | storage.plan
        storage.layer        | cuda gpu.accel storage storage.path
        storage.path         | cuda ffi gpu.accel gpu.transfer nvme nvme.spec
        storage.path.cufile  | cuda cuda.cufile ffi gpu.accel gpu.transfer nvme.pci storage.path \
                               storage.path.file
        storage.path.direct  | gpu.accel gpu.queue gpu.transfer nvme nvme.driver nvme.pci storage.path \
                               storage.plan
        storage.path.extents | gpu.accel gpu.transfer storage.fs storage.path storage.path.set
        storage.path.file    | ffi nvme.pci storage.path
        storage.path.mmap    | ffi gpu.accel gpu.transfer storage.path storage.path.file
        storage.path.pinned  | cuda ffi gpu.accel gpu.transfer nvme.pci storage.path storage.path.file
        storage.path.set     | gpu.accel gpu.transfer nvme.pci storage.path storage.plan
        storage.plan         | -

        models               | gpu.accel models.format models.raw models.tensor storage storage.fs storage.layer \
                               storage.path storage.plan
        models.format        | storage.fs storage.path
        models.raw           | models.format storage.fs
        models.tensor        | cuda gpu.accel gpu.queue models.format

        tools.bench          | cuda ffi gpu.accel gpu.queue gpu.transfer models models.format \
                               models.tensor nvme nvme.driver nvme.pci nvme.pci.vfiouser nvme.spec \
                               sim sim.serve storage storage.fs storage.layer storage.path \
                               storage.path.file storage.plan tools.graph tools.ssd
        tools.demo           | gpu.accel gpu.device gpu.queue gpu.transfer nvme nvme.driver nvme.pci \
                               nvme.spec sim storage tools.sample tools.ssd
        tools.doctor         | cuda cuda.cufile ffi gpu.accel gpu.device gpu.queue gpu.transfer \
                               nvme nvme.driver nvme.pci nvme.spec sim storage.path \
                               storage.path.cufile tools.machine
        tools.example        | cuda gpu.accel gpu.queue gpu.transfer nvme nvme.driver nvme.pci nvme.spec storage tools.ssd
        tools.fleet          | tools.report
        tools.graph          | cuda gpu.accel gpu.queue storage tools.ssd
        tools.machine        | ffi nvme.pci nvme.pci.host storage.path.file
        tools.report         | -
        tools.rows           | cuda gpu.accel gpu.queue storage storage.path
        tools.sample         | -
        tools.ssd            | gpu.accel gpu.device gpu.queue gpu.transfer nvme nvme.driver nvme.pci \
                               nvme.spec storage storage.fs tools.machine

        tools.top            | gpu.device gpu.watch nvme.pci storage
        tools.topology       | cuda cuda.nvml gpu.queue nvme.pci tools.doctor tools.machine \
                               tools.report

        cli                  | cli.output cuda ffi gpu.accel gpu.device gpu.queue gpu.transfer \
                               gpu.watch models models.format models.raw nvme nvme.driver nvme.memory \
                               nvme.pci nvme.spec sim sim.serve storage storage.fs \
                               storage.fs.partition storage.kind storage.path storage.plan \
                               tools.bench tools.demo tools.doctor tools.example tools.fleet tools.graph \
                               tools.machine tools.report tools.rows tools.ssd tools.top tools.topology
        cli.output           | ffi nvme.spec

        capi                 | cuda ffi gpu.accel gpu.device gpu.queue models models.format models.tensor nvme \
                               nvme.driver storage storage.fs storage.kind storage.layer storage.path \
                               storage.plan

        bench                | cuda ffi gpu.accel gpu.device gpu.transfer nvme nvme.driver nvme.memory \
                               nvme.pci nvme.pci.vfiouser nvme.spec sim storage storage.path \
                               storage.path.file storage.path.pinned tools.bench tools.report
      """;

  private static JavaClasses product;

  @BeforeAll
  static void readTheProduct() {
    product =
        new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .withImportOption(location -> !location.contains("/jmh_generated/"))
            .importPackages(ROOT);
  }

  private static DescribedPredicate<JavaClass> ours() {
    return resideInAPackage(ROOT + "..");
  }

  /** A package, and the packages that it may use; names without the root. */
  record Rule(String name, Set<String> below) {
    static Rule parse(String line) {
      String[] halves = line.split("\\|", -1);
      String below = halves[1].strip();
      return new Rule(halves[0].strip(), below.equals("-") ? Set.of() : Set.of(below.split(" +")));
    }

    @Override
    public String toString() {
      return name;
    }
  }

  static Stream<Rule> rules() {
    return RULES.lines().filter(line -> !line.isBlank()).map(Rule::parse);
  }

  @ParameterizedTest
  @MethodSource("rules")
  void packagesUseOnlyWhatLiesBelow(Rule rule) {
    String own = ROOT + "." + rule.name();
    String[] allowed =
        Stream.concat(Stream.of(rule.name(), "base"), rule.below().stream())
            .map(name -> ROOT + "." + name)
            .toArray(String[]::new);
    classes()
        .that()
        .resideInAPackage(own)
        .should()
        .onlyDependOnClassesThat(
            DescribedPredicate.not(ours()).or(JavaClass.Predicates.resideInAnyPackage(allowed)))
        .check(product);
  }

  private static Set<String> packages() {
    return product.stream()
        .map(JavaClass::getPackageName)
        .map(name -> name.substring(ROOT.length() + 1))
        .collect(Collectors.toCollection(TreeSet::new));
  }

  @Test
  void everyPackageOfEveryModuleIsUnderARule() {
    assertThat(rules().map(Rule::name)).containsExactlyInAnyOrderElementsOf(packages());
  }

  /** A row of the page: a package, what is in it, and the classes to begin with. */
  private static final Pattern ROW =
      Pattern.compile("^\\| `([a-z0-9.]+)` \\|.*\\| ([^|]+) \\|$", Pattern.MULTILINE);

  private static List<MatchResult> rows() throws IOException {
    String page = Files.readString(Path.of("../docs/architecture.md"));
    return ROW.matcher(page).results().toList();
  }

  @Test
  void everyPackageOfEveryModuleIsOnThePage() throws IOException {
    assertThat(rows().stream().map(row -> row.group(1)))
        .containsExactlyInAnyOrderElementsOf(packages());
  }

  @Test
  void thePageNamesClassesThatAreThere() throws IOException {
    Set<String> named =
        rows().stream()
            .flatMap(
                row ->
                    Arrays.stream(row.group(2).split(", "))
                        .map(name -> ROOT + "." + row.group(1) + "." + name.replace("`", "")))
            .collect(Collectors.toSet());
    assertThat(product.stream().map(JavaClass::getName)).containsAll(named);
  }

  @Test
  void librariesNeitherPrintNorExit() {
    noClasses()
        .that()
        .resideOutsideOfPackages(ROOT + ".cli..", ROOT + ".bench..")
        .should()
        .accessField(System.class, "out")
        .orShould()
        .accessField(System.class, "err")
        .orShould()
        .callMethod(System.class, "exit", int.class)
        .orShould()
        .callMethod(Throwable.class, "printStackTrace")
        .check(product);
  }

  @Test
  void nobodyUsesUnsafe() {
    noClasses()
        .should()
        .dependOnClassesThat()
        .haveFullyQualifiedName("sun.misc.Unsafe")
        .check(product);
  }
}
