import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import org.deidentifier.arx.ARXAnonymizer;
import org.deidentifier.arx.ARXConfiguration;
import org.deidentifier.arx.ARXLattice.ARXNode;
import org.deidentifier.arx.ARXResult;
import org.deidentifier.arx.AttributeType;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.Data;
import org.deidentifier.arx.criteria.DistinctLDiversity;
import org.deidentifier.arx.criteria.EqualDistanceTCloseness;
import org.deidentifier.arx.criteria.KAnonymity;
import org.deidentifier.arx.metric.Metric;
import org.deidentifier.arx.metric.Metric.AggregateFunction;

/**
 * Calls ARX for bench/arx.py: FOLDER OUT CASE..., each case being COLUMNS:SECRET:K:LIMIT:LOSS:MODEL
 * with COLUMNS joined by commas and MODEL one of none, l3, t0.2. For each it prints the levels, the
 * nodes, and the median CPU seconds of this thread over five calls after three that are not timed;
 * the rows go to OUT/number.csv, starred where they are suppressed.
 */
public class Arx {
    public static void main(String[] args) throws Exception {
        for (int number = 2; number < args.length; number++) {
            String[] part = args[number].split(":");
            String[] columns = part[0].split(",");
            Data data = Data.create(Path.of(args[0], "adult.csv").toFile(), StandardCharsets.UTF_8, ';');
            for (int j = 0; j < data.getHandle().getNumColumns(); j++) {
                data.getDefinition().setAttributeType(data.getHandle().getAttributeName(j), AttributeType.INSENSITIVE_ATTRIBUTE);
            }
            for (String column : columns) {
                String file = "adult_hierarchy_" + column + ".csv";
                data.getDefinition().setAttributeType(column, Hierarchy.create(Path.of(args[0], file).toFile(), StandardCharsets.UTF_8, ';'));
            }
            ARXConfiguration setting = ARXConfiguration.create();
            setting.addPrivacyModel(new KAnonymity(Integer.parseInt(part[2])));
            setting.setSuppressionLimit(Double.parseDouble(part[3]));
            setting.setQualityModel(part[4].equals("granularity")
                ? Metric.createLossMetric(0.5, AggregateFunction.ARITHMETIC_MEAN)
                : Metric.createDiscernabilityMetric(false));
            if (!part[5].equals("none")) {
                data.getDefinition().setAttributeType(part[1], AttributeType.SENSITIVE_ATTRIBUTE);
                setting.addPrivacyModel(part[5].equals("l3")
                    ? new DistinctLDiversity(part[1], 3)
                    : new EqualDistanceTCloseness(part[1], 0.2));
            }
            double[] spent = new double[5];
            ARXResult result = null;
            for (int run = -3; run < 5; run++) {
                data.getHandle().release();
                System.gc();
                long begin = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
                result = new ARXAnonymizer().anonymize(data, setting);
                if (run >= 0) spent[run] = (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - begin) / 1e9;
            }
            Arrays.sort(spent);
            ARXNode node = result.getGlobalOptimum();
            StringBuilder levels = new StringBuilder();
            for (String column : columns) {
                levels.append(node == null ? "-" : String.valueOf(node.getGeneralization(column))).append(' ');
            }
            System.out.println(levels + "; " + result.getLattice().getVirtualSize() + "; " + spent[2]);
            if (node != null) {
                result.getOutput(node, false).save(Path.of(args[1], (number - 2) + ".csv").toFile(), ';');
            }
        }
    }
}
