"""How many records a run had when it was taken in hand, until it is given back: deaths of workers are counted."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0011_brought_files")]

    operations = [migrations.AddField("run", "left_at", models.PositiveIntegerField(null=True, blank=True))]
