"""When a run that could not go on is tried again, and how often its worker failed in a row."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0007_room")]

    operations = [
        migrations.AddField("run", "faults", models.PositiveSmallIntegerField(default=0, db_default=0)),
        migrations.AddField("run", "not_before", models.DateTimeField(null=True, blank=True)),
    ]
