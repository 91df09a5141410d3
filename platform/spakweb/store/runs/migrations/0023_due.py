"""Two columns of runs have the names that all work has; the tables keep theirs."""

from django.db import migrations, models

COLUMNS = [
    migrations.RenameField("run", "not_before", "due"),
    migrations.AlterField("run", "due", models.DateTimeField(blank=True, db_column="not_before", null=True)),
    migrations.RenameField("run", "faults", "tries"),
    migrations.AlterField(
        "run", "tries", models.PositiveSmallIntegerField(db_column="faults", db_default=0, default=0)
    ),
    migrations.AlterField("run", "holder", models.CharField(blank=True, default="", max_length=80)),
]


class Migration(migrations.Migration):
    dependencies = [("runs", "0022_history"), ("jobs", "0001_initial")]

    operations = [migrations.SeparateDatabaseAndState(state_operations=COLUMNS)]
